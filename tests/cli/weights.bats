# kaio-run --weights: inputs by the names of tensors in safetensors files.

setup() {
    cd "$BATS_TEST_TMPDIR"
    cat >add.yaml <<'END'
kernel: add
params:
  x: in f32[n]
  w: in f32[n]
  b: inout f32[n]
compute: b[i] = b[i] + w[i] * x[i]
END
    kaio-emit add.yaml -o add.ptx
    one='\0\0\200\77' two='\0\0\0\100'
    tensors w.safetensors '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' "$one$two"
    tensors b.safetensors '{"__metadata__":{"a":"b"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' "$two$two"
}

# tensors FILE HEADER DATA: the data in escapes of printf
tensors() {
    # shellcheck disable=SC2059 # they are formats
    printf "\\x$(printf %02x ${#2})\0\0\0\0\0\0\0$2$3" >"$1"
}

# of NAME=VALUE...: b as it is printed
of() {
    kaio-run -q -d cpu add.ptx "$@" | cut -d ' ' -f 1-6
}

@test "inputs that are not given are tensors of their names" {
    [ "$(of --weights=w.safetensors --weights=b.safetensors x=@ones)" = "b  f32[2]  3 4" ]
    # what is given goes before, and of two files the first
    [ "$(of --weights=w.safetensors x=@ones b=@zeros)" = "b  f32[2]  1 2" ]
    tensors other.safetensors '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' "$two$two"
    [ "$(of --weights=other.safetensors --weights=w.safetensors x=@ones b=@zeros)" = "b  f32[2]  2 2" ]
    # and for each line
    printf 'x=@ones b=@zeros\nx=@const:2 b=@zeros\n' | kaio-run -q -d cpu --lines --weights=w.safetensors add.ptx >got
    [ "$(cut -f 2 got | cut -d ' ' -f 1-6)" = "b  f32[2]  1 2
b  f32[2]  2 4" ]
}

@test "an index says which file beside it has a tensor" {
    mkdir model
    mv w.safetensors model/model-00001-of-00002.safetensors
    mv b.safetensors model/model-00002-of-00002.safetensors
    cat >model/model.safetensors.index.json <<'END'
{"metadata": {"total_size": 16, "more": [1.5e3, true, null, {"a": "b"}, [], {}]},
 "weight_map": {"w": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
END
    [ "$(of --weights=model/model.safetensors.index.json x=@ones)" = "b  f32[2]  3 4" ]
    cd model
    [ "$(kaio-run -q -d cpu ../add.ptx --weights=model.safetensors.index.json x=@ones | cut -d ' ' -f 1-6)" = "b  f32[2]  3 4" ]
}

# refused MESSAGE ARGUMENT...
refused() {
    local said=$1
    shift
    run kaio-run -q -d cpu add.ptx x=@ones b=@zeros "$@"
    [ "$status" = 2 ] || { echo "status $status: $*"; return 1; }
    [[ $output == *"$said"* ]] || { echo "not said: $said"; echo "$output"; return 1; }
}

@test "weights that are missing, of another shape or type, or cut off" {
    refused 'w (in f32[n]) is not given'
    refused 'w (in f32[n]) is not given' --weights=b.safetensors
    refused "cannot open 'none.safetensors'" --weights=none.safetensors
    tensors half.safetensors '{"w":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}}' "$one$two"
    refused 'w' --weights=half.safetensors
    tensors long.safetensors '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' "$one"
    refused "'long.safetensors' is too short" --weights=long.safetensors
    head -c 20 w.safetensors >cut.safetensors
    refused "it ends within its header" --weights=cut.safetensors
    for text in '' '{' '[]' '{}' '{"weight_map": {"w": 1}}' '{"weight_map": {"w": "w.safetensors"}} x' \
        '{"weight_map": {}, "weight_map": {}}' "{\"a\": $(printf '[%.0s' {1..100})"; do
        printf %s "$text" >bad.json
        refused "'bad.json' is no index of safetensors files" --weights=bad.json
    done
    echo '{"weight_map": {"w": "gone.safetensors"}}' >gone.json
    refused "cannot open 'gone.safetensors'" --weights=gone.json
}
