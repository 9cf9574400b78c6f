import { settingsReference } from "./reference.ts";

const BEGIN = "<!-- Keys: generated from the schema by `npm run docs:config`; edit the schema. -->";
const END = "<!-- End of the keys. -->";

/** Updates the tables of keys between the two marks of the page. Throws if a mark is missing. */
export function withReference(page: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error("docs/configuration.md lacks the marks around its keys");
  return `${page.slice(0, begin)}${BEGIN}\n\n${settingsReference()}\n\n${page.slice(end)}`;
}
