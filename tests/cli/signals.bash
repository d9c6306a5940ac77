# What the tests of signals share: load signals

# interrupted SIGNAL COMMAND...: the command is ended by it within two seconds, or $most, though it would run for longer, and leaves no
# temporary file behind; meanwhile there is a file like $meanwhile
interrupted() {
    local sig=$1 pid status=0
    shift
    # a background job of a shell ignores SIGINT
    env --default-signal=INT,TERM,QUIT "$@" >said 2>&1 3>&- &
    pid=$!
    sleep 0.7
    kill -0 $pid || { cat said; return 1; }
    [ -z "${meanwhile-}" ] || [ -n "$(find . -name "$meanwhile")" ]
    SECONDS=0
    kill -s "$sig" $pid
    wait $pid || status=$?
    [ "$status" -eq $((128 + $(kill -l "$sig"))) ] || { cat said; return 1; }
    [ $SECONDS -le "${most:-2}" ]
    rm said
    [ -z "$(find . -name '.kaio-*')" ]
}
