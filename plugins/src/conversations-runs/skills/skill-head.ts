import { createRequire } from "node:module";
import * as v from "valibot";
import type * as Yaml from "yaml";

/** What a `SKILL.md` says of its skill before its instructions. */
export interface SkillHead {
  readonly name: string;
  readonly description: string;
}

const HEAD = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/;
const HEAD_CHARACTERS = 16 * 1024;

/** The rules of the published Agent Skills convention. Its other keys are optional, and no turn needs them. */
const schema = v.object({
  name: v.pipe(v.string(), v.regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/), v.maxLength(64)),
  description: v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(1024)),
});

const load = createRequire(import.meta.url);

/** Reads the YAML front matter of a `SKILL.md`. Undefined if it is missing or breaks a rule. */
export function readSkillHead(text: string): SkillHead | undefined {
  const head = HEAD.exec(text.slice(0, HEAD_CHARACTERS))?.[1];
  if (head === undefined) return undefined;
  try {
    // It loads slowly. Services whose agents have no skills do not load it.
    const { parse } = load("yaml") as typeof Yaml;
    const parsed = v.safeParse(schema, parse(head, { schema: "core", maxAliasCount: 0, logLevel: "silent" }));
    return parsed.success ? parsed.output : undefined;
  } catch {
    return undefined;
  }
}
