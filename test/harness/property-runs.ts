/** How often a property is tried whose samples take long: a fifth on every day. */
export function propertyRuns(count: number): number {
  return process.env["PORTICO_LONG"] ? count : Math.ceil(count / 5);
}
