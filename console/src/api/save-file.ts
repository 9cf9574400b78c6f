/** How long the bytes stay in memory: the browser has taken them over by then. */
const KEPT_MS = 60_000;

/** Saves bytes that the page has read as a file of the user: calls need a token in their headers, so a link cannot make them. */
export function saveFile(bytes: Blob, name: string): void {
  const address = URL.createObjectURL(bytes);
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
