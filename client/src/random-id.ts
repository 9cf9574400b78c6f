/** A new ID of 128 random bits. Also works in pages that were loaded over plain HTTP and have no `crypto.randomUUID`. */
export function randomId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `${prefix}${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
