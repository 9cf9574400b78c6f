/**
 * Milliseconds since 1970: now, or the latest of what was noted earlier where the clock has stepped back behind it, so that nothing ends before it
 * began. Texts are ISO 8601.
 */
export function notBefore(now: number, ...earlier: readonly (string | number | undefined)[]): number {
  return earlier.reduce<number>((latest, time) => {
    const noted = typeof time === "string" ? Date.parse(time) : time;
    return noted !== undefined && noted > latest ? noted : latest;
  }, now);
}
