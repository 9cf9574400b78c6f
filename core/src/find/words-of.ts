/** Characters of one word. Longer words are cut. */
const WORD_CHARACTERS = 40;
/** Characters of a text that are looked at, for each word that is wanted. */
const TEXT_CHARACTERS = 200;
const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const ASCII = /^[\0-\x7f]*$/;
const ASCII_WORD = /[a-z0-9]+/g;
/** Scripts that write no spaces between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;

/**
 * The different words of a text, at most this many, in their order: sequences of letters and digits in lower case, without regard to the
 * form of their characters (NFKC). In scripts that write no spaces, each pair of neighbouring characters is a word.
 */
export function wordsOf(text: string, most: number): readonly string[] {
  const begin = text.slice(0, most * TEXT_CHARACTERS);
  // The same words in a fraction of the time. Searches ask for the words of each run that they look at.
  if (ASCII.test(begin)) return asciiWords(begin.toLowerCase(), most);
  const words = new Set<string>();
  const normal = begin.toWellFormed().normalize("NFKC").toLowerCase().normalize("NFKC");
  for (const [found] of normal.matchAll(WORD)) {
    for (const word of split(found)) {
      if (words.size >= most) return [...words];
      words.add(word);
    }
  }
  return [...words];
}

function asciiWords(normal: string, most: number): readonly string[] {
  const words = new Set<string>();
  for (const word of normal.match(ASCII_WORD) ?? []) {
    if (words.size >= most) break;
    words.add(word.slice(0, WORD_CHARACTERS));
  }
  return [...words];
}

function* split(found: string): Generator<string, void> {
  let from = 0;
  for (const { 0: unspaced, index } of found.matchAll(UNSPACED)) {
    if (index > from) yield cut(found.slice(from, index));
    yield* pairs([...unspaced]);
    from = index + unspaced.length;
  }
  if (from < found.length) yield cut(found.slice(from));
}

/** Without half a character at its end. */
const cut = (word: string): string => word.slice(0, WORD_CHARACTERS).replace(/[\uD800-\uDBFF]$/, "");

function* pairs(characters: readonly string[]): Generator<string, void> {
  if (characters.length === 1) yield characters[0]!;
  for (let at = 1; at < characters.length; at++) yield characters[at - 1]! + characters[at]!;
}
