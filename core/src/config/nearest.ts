/**
 * The word among `known` that `written` probably means: at most a third of its letters differ, or only the case differs. In names
 * with parts, such as `PORTICO_PROXY_PORT` and `data-dir`, shared first and last parts do not count, because they would make any
 * two names similar. Undefined if no word is similar.
 */
export function nearestWord(written: string, known: Iterable<string>): string | undefined {
  const wanted = written.toLowerCase();
  // A very long key is not worth a comparison: it is not a misspelling.
  if (wanted.length > 64) return undefined;
  let nearest: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const word of known) {
    const [own, other] = differingParts(wanted, word.toLowerCase());
    const edits = editDistance(own, other);
    if (edits <= Math.max(1, Math.floor(own.length / 3)) && edits < fewest) [nearest, fewest] = [word, edits];
  }
  return nearest;
}

/** Two names without the parts that both begin with and both end with. */
function differingParts(one: string, other: string): readonly [string, string] {
  const [ones, others] = [one.split(PART), other.split(PART)];
  const most = Math.min(ones.length, others.length);
  let before = 0;
  while (before < most && ones[before] === others[before]) before++;
  let after = 0;
  while (after < most - before && ones.at(-1 - after) === others.at(-1 - after)) after++;
  const rest = (parts: readonly string[]) => parts.slice(before, parts.length - after).join("_");
  return [rest(ones), rest(others)];
}

const PART = /[_-]/;

/** Number of letters to insert, remove or replace. Two swapped neighbours count once. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      let edits = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (isSame ? 0 : 1));
      const isSwapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (isSwapped) edits = Math.min(edits, beforeLast[column - 2]! + 1);
      current.push(edits);
    }
    [beforeLast, last] = [last, current];
  }
  return last[to.length]!;
}
