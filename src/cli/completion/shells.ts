/** The completion script of each shell, which runs `muster --complete`, and how to read the line that bash passes on. */

type Shell = { readonly install: string; readonly script: string }

const BASH = `# bash completion for muster; needs nothing but bash 3.2
_muster() {
  local line kind
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <("\${1/#\\~/$HOME}" --complete bash "\${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2> /dev/null)
  kind=\${COMPREPLY[0]}
  COMPREPLY=("\${COMPREPLY[@]:1}")
  type compopt > /dev/null 2>&1 || return 0
  case $kind in
    open) compopt -o nospace +o default ;;
    words) compopt +o default ;;
  esac
}
complete -o default -F _muster muster
`

const ZSH = `#compdef muster
_muster() {
  local -a lines found
  local line kind about
  lines=("\${(@f)$(\${\${(Q)words[1]}/#\\~/$HOME} --complete zsh "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2> /dev/null)}")
  kind=$lines[1]
  shift lines
  [[ $kind == files ]] && { _files; return }
  for line in "\${lines[@]}"; do
    about=\${line#*$'\\t'}
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}\${about:+:$about}")
  done
  (( $#found )) || return 1
  if [[ $kind == open ]]; then _describe -V muster found -S ''; else _describe -V muster found; fi
}
if [[ $funcstack[1] == _muster ]]; then _muster; else compdef _muster muster; fi
`

const FISH = `# fish completion for muster
function __muster_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l lines ($program --complete fish $words[2..-1] "$word" 2> /dev/null)
    if test "$lines[1]" = files
        __fish_complete_path "$word"
    else if test (count $lines) -gt 1
        printf '%s\\n' $lines[2..-1]
    end
end
complete -c muster -f -a '(__muster_complete)'
`

export const SHELLS: Readonly<Record<string, Shell>> = {
  bash: {
    install: "muster completion bash > ~/.bash_completion.muster; echo '. ~/.bash_completion.muster' >> ~/.bashrc",
    script: BASH,
  },
  zsh: {
    install:
      "mkdir -p ~/.zfunc; muster completion zsh > ~/.zfunc/_muster; echo 'fpath+=(~/.zfunc); autoload -Uz compinit && compinit' >> ~/.zshrc",
    script: ZSH,
  },
  fish: {
    install: 'mkdir -p ~/.config/fish/completions; muster completion fish > ~/.config/fish/completions/muster.fish',
    script: FISH,
  },
}

/** bash keeps these at the beginning of a word, although they are break characters. */
const SPECIAL_PREFIXES = '@$'

/**
 * The words after the program's name, without quotes; the last one is unfinished. `cut`: how many of its characters bash keeps
 * on the line, as bash's own word begins at a quote or after one of `breaks` (`COMP_WORDBREAKS`). `isQuoted`: its quote is open.
 */
export function readBashLine(
  line: string,
  breaks: string,
): { readonly words: readonly string[]; readonly cut: number; readonly isQuoted: boolean } {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  let cut = 0
  const begin = (): void => {
    word ??= ''
  }
  for (let at = 0; at < line.length; at += 1) {
    const character = line[at] ?? ''
    if (quote !== '' && character === quote) quote = ''
    else if (quote === '' && (character === "'" || character === '"')) {
      begin()
      quote = character
      cut = word?.length ?? 0
    } else if (character === '\\' && quote !== "'") {
      at += 1
      word = `${word ?? ''}${line[at] ?? ''}`
    } else if (quote === '' && /\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
      cut = 0
    } else {
      word = `${word ?? ''}${character}`
      if (quote === '' && breaks.includes(character)) cut = word.length - (SPECIAL_PREFIXES.includes(character) ? 1 : 0)
    }
  }
  return { words: [...words, word ?? ''].slice(1), cut, isQuoted: quote !== '' }
}
