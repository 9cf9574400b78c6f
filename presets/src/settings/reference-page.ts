import { settingsReference } from "./reference.ts";

const BEGIN = "<!-- Keys: generated from the schema by `npm run docs:config`; edit the schema. -->";
const END = "<!-- End of the keys. -->";

/** The page with the tables of keys between its two marks brought up to date. Throws when it has lost a mark. */
export function withReference(page: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error("docs/configuration.md has lost the marks around its keys");
  return `${page.slice(0, begin)}${BEGIN}\n\n${settingsReference()}\n\n${page.slice(end)}`;
}
