import { createRequire } from "node:module";
import { ports, withoutEnd } from "@portico/core";
import { maxCharacters } from "@portico/core/contract";
import * as v from "valibot";
import type * as Yaml from "yaml";

/** A skill that an agent's turns are offered. */
export interface Skill extends SkillHead {
  /** Path of its folder below the agent's folder. */
  readonly path: string;
}

/** Maximum skills of an agent. Each costs tokens in every model call. */
const MOST = 64;

/**
 * The skills of an agent that can be used: each folder of `skills` with a valid `SKILL.md`, whose `name` is the folder's. Others are left out,
 * and `leftOut` is told their paths and the reasons.
 */
export async function readSkills(
  agents: Pick<ports.Agents, "skillFile">,
  { id, definition }: { readonly id: string; readonly definition: Pick<ports.AgentDefinition, "skills"> },
  leftOut: (path: string, reason: string) => void = () => {},
): Promise<readonly Skill[]> {
  const paths = [...new Set(definition.skills.map((path) => withoutEnd(path, "/")))];
  const found = await Promise.all(paths.slice(0, MOST).map((path) => readSkill(agents, id, path)));
  const skills = new Map<string, Skill>();
  for (const [at, path] of paths.entries()) {
    const skill = found[at];
    if (skill === undefined) leftOut(path, `An agent has at most ${MOST} skills`);
    else if ("fault" in skill) leftOut(path, skill.fault);
    else if (skills.has(skill.name)) leftOut(path, "Another skill has this name");
    else skills.set(skill.name, skill);
  }
  return [...skills.values()];
}

/** The definition whose instructions name the skills. The model reads their contents when it needs them. */
export function withSkills(definition: ports.AgentDefinition, skills: readonly Skill[]): ports.AgentDefinition {
  if (skills.length === 0) return definition;
  const lines = skills.map(({ name, description }) => `- ${name}: ${description.replaceAll(/\s+/g, " ")}`);
  const words = [
    "You have these skills. Before a task that a skill describes, read the skill's instructions with the tool ReadSkill:",
    ...lines,
  ].join("\n");
  return { ...definition, instructions: definition.instructions ? `${definition.instructions}\n\n${words}` : words };
}

async function readSkill(agents: Pick<ports.Agents, "skillFile">, id: string, path: string): Promise<Skill | SkillFault> {
  try {
    const text = await agents.skillFile?.(id, path, "SKILL.md");
    if (text === undefined) return { fault: "It has no SKILL.md that is a text of at most 1 MiB below the agent's folder" };
    const head = readSkillHead(text);
    if ("fault" in head) return head;
    return head.name === path.split("/").at(-1) ? { ...head, path } : { fault: "Its name is not that of its folder" };
  } catch (error) {
    if (error instanceof ports.AgentsUnavailable) return { fault: "The agents' files cannot be read now" };
    throw error;
  }
}

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
