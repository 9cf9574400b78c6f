/**
 * The word among `known` that was probably meant by `written`: at most a third of its letters differ, or it is the same but for case.
 * Undefined where none is near.
 */
export function nearestWord(written: string, known: Iterable<string>): string | undefined {
  const wanted = written.toLowerCase();
  // A key that nobody could have meant is not worth comparing, however long it is.
  if (wanted.length > 64) return undefined;
  let nearest: string | undefined;
  let fewest = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const word of known) {
    const edits = editDistance(wanted, word.toLowerCase());
    if (edits < fewest) [nearest, fewest] = [word, edits];
  }
  return nearest;
}

/** Letters to insert, remove or replace. Two neighbours that changed places count once. */
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
