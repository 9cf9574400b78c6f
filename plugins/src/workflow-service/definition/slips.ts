/** Something that authors write because other languages have it, and what to write instead. */
interface Slip {
  readonly written: RegExp;
  readonly instead: string;
}

const SLIPS: readonly Slip[] = [
  { written: /\?\?/, instead: "a default is `has(parameters.a) ? parameters.a : 'b'`" },
  { written: /\?\.[A-Za-z_]/, instead: "ask first: `has(parameters.a) ? parameters.a.b : null`" },
  { written: /===|!==/, instead: "write `==` or `!=`" },
  { written: /=>/, instead: "write the name of the element first: `LIST.map(each, each.name)`" },
  { written: /`/, instead: "join texts with `+`, or use `'%s: %d'.format([a, b])`" },
  { written: /\btypeof\b/, instead: "write `type(VALUE) == string`" },
  { written: /\.(?:toUpperCase|upper|uppercase|toUpper)\(/, instead: "write `TEXT.upperAscii()`" },
  { written: /\.(?:toLowerCase|lower|lowercase|toLower)\(/, instead: "write `TEXT.lowerAscii()`" },
  { written: /\.includes\(/, instead: "write `TEXT.contains(PART)`, or `VALUE in LIST`" },
  { written: /\.(?:length|count)\b/, instead: "write `size(VALUE)`" },
  { written: /\.replaceAll\(/, instead: "write `TEXT.replace(OLD, NEW)`, which replaces all" },
  { written: /\.some\(/, instead: "write `LIST.exists(each, TEST)`" },
  { written: /\.every\(/, instead: "write `LIST.all(each, TEST)`" },
  { written: /\.find\(/, instead: "write `LIST.filter(each, TEST)[0]`" },
  { written: /\.(?:toString\(|toFixed\()|\b(?:String|str)\(/, instead: "write `string(VALUE)`, or `'%.2f'.format([VALUE])`" },
  { written: /\b(?:Number|parseInt|parseFloat|number|float)\(/, instead: "write `int(VALUE)` or `double(VALUE)`" },
  { written: /\bJSON\./, instead: "write `json.encode(VALUE)` or `json.decode(TEXT)`" },
  { written: /\bMath\./, instead: "write `math.round(NUMBER)`, `math.greatest(LIST)` and so on" },
  { written: /\bObject\.|\bkeys\(/, instead: "the keys of an object are `OBJECT.map(key, key)`" },
  { written: /\bencodeURIComponent\(/, instead: "write `url.encode(TEXT)`" },
  {
    written: /\b(?:now|today)\(|\bDate\b/,
    instead: "no function reads the clock: the start of the run is `timestamp(run.startedAt)`",
  },
  {
    written: /\b(?:uuid|random|randomUUID)\(/,
    instead: "no function reads chance: an id that is unique for the run is `run.id`",
  },
  {
    written: /^Logical operator requires/,
    instead: "`||` and `&&` take true and false: a default is `has(parameters.a) ? parameters.a : 'b'`",
  },
];

/** What to write instead, for an expression that cannot be used; "" if it has none of the usual slips. `fault`: what the library says. */
export function hintFor(source: string, fault = ""): string {
  const slip = SLIPS.find(({ written }) => written.test(source) || written.test(fault));
  return slip ? `; ${slip.instead}` : "";
}
