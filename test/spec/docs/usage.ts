/** What one command takes, by its `--help`. */
interface Help {
  /** How many words it needs, and takes at most, beside flags. */
  readonly words: { readonly least: number; readonly most: number };
  readonly flags: ReadonlyMap<string, { readonly hasValue: boolean; readonly isNeeded: boolean; readonly about: string }>;
}

/** Flags of every command: a usage may leave them out. */
const EVERYWHERE = ["--config", "--data-dir"];

/**
 * What lines such as `portico token issue --provider ID [--label TEXT]    what it does` say wrongly of their commands. Several lines of one
 * command are its ways: together they say all that it takes.
 */
export function faultsOfUsage(text: string, helpOf: (words: string) => string): string[] {
  const said = new Map<string, Set<string>>();
  const faults: string[] = [];
  for (const line of text.split("\n").filter((each) => each !== "")) {
    const [synopsis = ""] = line.split(/ {2,}/);
    const [, words = ""] = /^portico ([a-z]+(?: [a-z]+)*)/.exec(synopsis) ?? [];
    const { words: takes, flags } = readHelp(helpOf(words));
    const parts = partsOf(synopsis.slice(`portico ${words}`.length));
    const named = new Map(parts.flatMap((part) => (part.flag ? [[part.flag, part]] : [])));
    const others = parts.filter(({ flag }) => !flag);
    const tell = (fault: string) => void faults.push(`portico ${words}: ${fault}`);

    for (const [flag, { hasValue, isOptional }] of named) {
      const known = flags.get(flag);
      if (!known) tell(`there is no ${flag}`);
      else if (known.hasValue !== hasValue)
        tell(`${flag} has ${known.hasValue ? "a" : "no"} value, and is said with${hasValue ? " one" : "out"}`);
      else if (known.isNeeded && isOptional) tell(`${flag} is needed, and said in brackets`);
    }
    for (const [flag, { isNeeded }] of flags) if (isNeeded && !named.has(flag)) tell(`${flag} is needed, and not said`);
    const needed = others.filter(({ isOptional }) => !isOptional).length;
    if (needed < takes.least) tell(`${takes.least} words are needed, and ${needed} said`);
    if (others.length > takes.most) tell(`${takes.most} words are taken, and ${others.length} said`);
    said.set(words, new Set([...(said.get(words) ?? []), ...named.keys()]));
  }
  for (const [words, named] of said) {
    const left = [...readHelp(helpOf(words)).flags].flatMap(([flag, { about }]) =>
      named.has(flag) || EVERYWHERE.includes(flag) || isForOthers(about, words) ? [] : [flag],
    );
    if (left.length > 0) faults.push(`portico ${words}: nobody says ${left.join(", ")}`);
  }
  return faults;
}

/** Whether a flag is for some presets, and the usage is that of another one. */
function isForOthers(about: string, words: string): boolean {
  const [, preset] = /^start (.+)$/.exec(words) ?? [];
  const [, presets] = /for the presets (.+)$/.exec(about) ?? [];
  return preset !== undefined && presets !== undefined && !presets.includes(preset);
}

interface Part {
  readonly flag: string | undefined;
  readonly hasValue: boolean;
  readonly isOptional: boolean;
}

/** `FILE…`, `[preset]`, `--json`, `[--label TEXT]`. */
function partsOf(synopsis: string): Part[] {
  return [...synopsis.matchAll(/(\[?)(?:(--[a-z-]+)( [^\s[\]-][^\s\]]*)?|[^\s[\]]+)\]?/g)].map(([, bracket, flag, value]) => ({
    flag,
    hasValue: value !== undefined,
    isOptional: bracket === "[",
  }));
}

function readHelp(help: string): Help {
  const rows = [...help.matchAll(/^ +(--[a-z-]+|[A-Z_]+)(=<[^>]+>)? {2,}(.*)$/gm)].map(([, name = "", value, about = ""]) => ({
    name,
    hasValue: value !== undefined,
    isNeeded: about.includes("(Required)"),
    about,
  }));
  const words = rows.filter(({ name }) => !name.startsWith("--"));
  const flags = rows.filter(({ name }) => name.startsWith("--"));
  return {
    words: { least: words.filter(({ isNeeded }) => isNeeded).length, most: words.length },
    flags: new Map(flags.map(({ name, ...flag }) => [name, flag])),
  };
}
