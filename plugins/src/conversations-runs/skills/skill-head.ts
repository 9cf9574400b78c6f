import { maxCharacters } from "@portico/core/contract";
import { createRequire } from "node:module";
import * as v from "valibot";
import type * as Yaml from "yaml";

/** What a `SKILL.md` says of its skill before its instructions. */
export interface SkillHead {
  readonly name: string;
  readonly description: string;
}

/** Why a skill cannot be used. */
export interface SkillFault {
  readonly fault: string;
}

const HEAD = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/;
const HEAD_CHARACTERS = 16 * 1024;

/** The rules of the published Agent Skills convention. Its other keys are optional, and no turn needs them. */
const schema = v.object({
  name: v.pipe(v.string(), v.regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/), maxCharacters(64)),
  description: v.pipe(v.string(), v.trim(), v.nonEmpty(), maxCharacters(1024)),
});

const load = createRequire(import.meta.url);

/** Reads the YAML front matter of a `SKILL.md`, or says why it is missing or breaks a rule. */
export function readSkillHead(text: string): SkillHead | SkillFault {
  const head = HEAD.exec(text.slice(0, HEAD_CHARACTERS))?.[1];
  if (head === undefined) return { fault: "Its SKILL.md does not begin with a front matter between two lines `---`" };
  try {
    // It loads slowly. Services whose agents have no skills do not load it.
    const { parse } = load("yaml") as typeof Yaml;
    const read = (logLevel: "silent" | "error"): unknown => parse(head, { schema: "core", maxAliasCount: 0, logLevel });
    const parsed = v.safeParse(schema, read("silent"));
    if (parsed.success) return parsed.output;
    // Throws if a fault of the YAML is the reason.
    read("error");
    const key = String(parsed.issues[0].path?.[0]?.key ?? "name");
    return { fault: `The front matter of its SKILL.md has no valid \`${key}\`` };
  } catch {
    return { fault: "The front matter of its SKILL.md is not YAML: a text with a colon and a blank needs quotes" };
  }
}
