/** How long the bytes stay in memory: the browser has taken them over by then. */
const KEPT_MS = 60_000;

/** Saves bytes that the page has read as a file of the user: calls need a token in their headers, so a link cannot make them. */
export function saveFile(bytes: Blob, name: string): void {
  const address = URL.createObjectURL(bytes);
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}

/**
 * Opens bytes that the page has read in the browser's own viewer of PDFs, in a new tab. Whatever the bytes are, the browser takes them for a PDF: they
 * cannot be a page with scripts. Returns false if the browser does not open a tab.
 */
export function openPdf(bytes: Blob): boolean {
  const address = URL.createObjectURL(new Blob([bytes], { type: "application/pdf" }));
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
  const tab = open(address, "_blank");
  // A link of the document may lead the tab to another site, which must not reach the console.
  if (tab) tab.opener = null;
  return tab !== null;
}
