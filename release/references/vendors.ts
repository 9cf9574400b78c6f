// Run after a change of what is known of vendors and models: `npm run docs:vendors`.
import { KNOWN_MODELS } from "../../adapters/src/models/facts/known-models.ts";
import { KNOWN_SINCE, KNOWN_VENDORS, type KnownRule } from "../../adapters/src/models/facts/known-vendors.ts";
import { rewritePage, withMarkedPart } from "./marked-part.ts";

const MARKS = [
  "<!-- Vendors and models: generated from adapters/src/models/facts by `npm run docs:vendors`; edit the facts. -->",
  "<!-- End of the vendors and models. -->",
] as const;

/** Updates the tables in the page. Throws if a mark is missing. */
export function withVendorTables(page: string): string {
  const vendors = KNOWN_VENDORS.flatMap(({ name, hosts, types, rules }) => {
    const knownBy = [...hosts, ...types].map((each) => `\`${each}\``).join(", ");
    return rules.map((rule, at) => row(at === 0 ? [name, knownBy] : ["", ""], rule));
  });
  const models = KNOWN_MODELS.flatMap(({ name, rules }) => rules.map((rule) => row([name], rule)));
  return withMarkedPart(
    page,
    MARKS,
    [
      `The sources were read until ${KNOWN_SINCE}.`,
      "### Vendors and servers",
      table(["Vendor", "Known by", "Differs in", "Otherwise", "Source"], vendors),
      "### Models",
      table(["Models", "Differ in", "Otherwise", "Source"], models),
    ].join("\n\n"),
  );
}

function row(head: readonly string[], rule: KnownRule): string {
  const { because, source, chat, messages, ...others } = rule;
  const set = [chat, messages, others].flatMap((each) => Object.entries(each ?? {}));
  const differs = set.map(([key, value]) => `\`${key}: ${String(value)}\``).join(", ");
  return `| ${[...head, differs, because.replaceAll("<", "&lt;"), source.split(", ").map(linked).join(", ")].join(" | ")} |`;
}

/** An issue or a page as a link. */
function linked(source: string): string {
  const [, repository, number] = /^([\w.-]+\/[\w.-]+)#(\d+)$/.exec(source) ?? [];
  if (repository !== undefined) return `[${source}](https://github.com/${repository}/issues/${number})`;
  return /^[\w.-]+\.(?:ai|com)\/\S+$/.test(source) ? `[${source}](https://${source})` : source;
}

function table(heads: readonly string[], rows: readonly string[]): string {
  return [`| ${heads.join(" | ")} |`, `|${" --- |".repeat(heads.length)}`, ...rows].join("\n");
}

if (import.meta.main) await rewritePage("vendors.md", withVendorTables);
