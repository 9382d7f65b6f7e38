# SPDX-License-Identifier: MIT
# fish completion for spillway

function __spillway_presets
    spillway --preset=help 2>/dev/null | string match -r '^[a-z][a-z-]*'
    echo help
end

complete -c spillway -x -l max-frame -d 'longest line, either way'
complete -c spillway -x -l max-content -d 'cut tool results beyond'
complete -c spillway -x -l max-depth -d 'deepest nesting of a message'
complete -c spillway -x -l memory -d 'memory for waiting frames'
complete -c spillway -x -l spill -d 'disk for waiting frames'
complete -c spillway -x -l spill-dir -d 'where it is' -a '(__fish_complete_directories)'
complete -c spillway -x -l stall-timeout -d 'give up requests of a stalled host'
complete -c spillway -x -l request-timeout -d 'give up a request after'
complete -c spillway -x -l cancel -d 'tell the server of given-up requests' -a 'on off'
complete -c spillway -x -l cancel-grace -d 'end a server that heeds no cancel'
complete -c spillway -x -l stop-grace -d 'from end of input to SIGTERM'
complete -c spillway -l strict -d 'repair nothing'
complete -c spillway -l observe -d 'change nothing, only measure'
complete -c spillway -x -l preset -d 'the known limits of a host' -a '(__spillway_presets)'
complete -c spillway -x -l metrics -d 'metrics on stderr' -a 'logfmt json off'
complete -c spillway -x -l metrics-interval -d 'not only at exit, but every'
complete -c spillway -r -l metrics-file -d 'Prometheus text'
complete -c spillway -x -l log-level -d 'how much is told' -a 'error warn info debug'
complete -c spillway -r -l log-file -d 'log and metrics to this file, too'
complete -c spillway -x -l server-stderr -d 'what the server writes' -a 'forward drop'
complete -c spillway -s h -l help -d 'options'
complete -c spillway -s V -l version -d 'the version'
complete -c spillway -x -a '(__fish_complete_subcommand)'
