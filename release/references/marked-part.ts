import { readFileSync, writeFileSync } from "node:fs";

/** Puts a text between the two marks of a page. Throws if a mark is missing. */
export function withMarkedPart(page: string, [begin, end]: readonly [begin: string, end: string], text: string): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`The page lacks the marks ${begin} and ${end}`);
  return `${page.slice(0, from)}${begin}\n\n${text}\n\n${page.slice(to)}`;
}

/** Writes a page of `docs` again, as `change` gives it. */
export async function rewritePage(name: string, change: (page: string) => string | Promise<string>): Promise<void> {
  const page = new URL(`../../docs/${name}`, import.meta.url);
  writeFileSync(page, await change(readFileSync(page, "utf8")));
}
