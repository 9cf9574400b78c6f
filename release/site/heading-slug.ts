/** Names headings as forges do, so that one link leads to a heading on both. */
export function forgeSlug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
}
