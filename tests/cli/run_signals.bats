# kaio-run: a signal ends it, whatever it is doing, and leaves no file behind.
bats_require_minimum_version 1.5.0
load run
load signals

@test "while inputs are made" {
    copy_of u8 n n >c.ptx
    interrupted INT kaio-run -q -d cpu c.ptx n=400M x=@randint:0:7 y=y.bin
    interrupted TERM kaio-run -q -d cpu c.ptx n=400M x=@randint:0:7 y=y.bin
}

@test "while an input or the PTX is waited for" {
    mkfifo pipe
    sleep 30 >pipe 3>&- &
    local writer=$!
    interrupted INT kaio-run -q -d cpu saxpy.ptx x=pipe y=@ones:y.npy
    interrupted TERM kaio-run -q -d cpu pipe n=1 x=@ones y=@ones:y.npy
    kill $writer
}

@test "while a kernel runs, after it has said where it is" {
    ulimit -c 0
    sed 's/^\$done:/$endless:\n    bra $endless;\n&/; s/bra \$done/bra $endless/' copy.ptx >endless.ptx
    local args=(--entry copy --grid 1 --block 1 --arg 'in u8[2]=@ones' --arg 'out u8[2]=y.npy' --arg u32=2)
    interrupted INT kaio-run -q -d cpu endless.ptx "${args[@]}"
    interrupted TERM kaio-run -q -d cpu endless.ptx "${args[@]}"
    interrupted QUIT kaio-run -q -d cpu endless.ptx "${args[@]}"
}

@test "while an output is written" {
    mkfifo slow
    exec 5<>slow # a reader that does not read
    copy_of u8 n n >c.ptx
    interrupted INT kaio-run -q -d cpu c.ptx n=100Ki x=@ones y=slow
}
