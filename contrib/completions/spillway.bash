# SPDX-License-Identifier: MIT
# bash completion for spillway: options, their words, then the command's own.

_spillway()
{
  local cur prev i words
  cur=${COMP_WORDS[COMP_CWORD]}
  prev=${COMP_WORDS[COMP_CWORD-1]}

  # bash splits words at "=".
  if [ "$cur" = "=" ]; then
    cur=
  elif [ "$prev" = "=" ]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  case $prev in
  --preset)
    words="$(spillway --preset=help 2>/dev/null |
      sed -n 's/^\([a-z][a-z-]*\).*/\1/p') help" ;;
  --metrics) words="logfmt json off" ;;
  --log-level) words="error warn info debug" ;;
  --server-stderr) words="forward drop" ;;
  --cancel) words="on off" ;;
  --spill-dir)
    mapfile -t COMPREPLY < <(compgen -d -- "$cur")
    return ;;
  --metrics-file|--log-file)
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return ;;
  --max-frame|--max-content|--max-depth|--memory|--spill|--stall-timeout|\
  --request-timeout|--cancel-grace|--stop-grace|--metrics-interval)
    words="off" ;;
  esac
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    return
  fi
  # Behind the command, completion is the command's.
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
    --) i=$((i + 1)); break ;;
    -*|=) ;;
    *) [ "${COMP_WORDS[i-1]}" = "=" ] || break ;;
    esac
  done
  if [ "$i" -lt "$COMP_CWORD" ] && declare -F _command_offset >/dev/null; then
    _command_offset "$i"
    return
  fi
  case $cur in
  -*)
    mapfile -t COMPREPLY < <(compgen -W "--max-frame= --max-content=
      --max-depth= --memory= --spill= --spill-dir= --stall-timeout=
      --request-timeout= --cancel= --cancel-grace= --stop-grace= --strict
      --observe --preset= --metrics= --metrics-interval= --metrics-file=
      --log-level= --log-file= --server-stderr= --help --version" -- "$cur")
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace ;;
  *) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
  esac
}

complete -F _spillway spillway
