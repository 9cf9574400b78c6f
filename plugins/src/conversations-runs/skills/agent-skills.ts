import { ports } from "@portico/core";
import { readSkillHead, type SkillHead } from "./skill-head.ts";

/** A skill that an agent's turns are offered. */
export interface Skill extends SkillHead {
  /** Path of its folder below the agent's folder. */
  readonly path: string;
}

/** Maximum skills of an agent. Each costs tokens in every model call. */
const MOST = 64;

/**
 * The skills of an agent that can be used: each folder of `skills` with a valid `SKILL.md`, whose `name` is the folder's. Others are left out,
 * and `leftOut` is told their paths.
 */
export async function readSkills(
  agents: Pick<ports.Agents, "skillFile">,
  { id, definition }: Pick<ports.Agent, "id" | "definition">,
  leftOut: (path: string) => void = () => {},
): Promise<readonly Skill[]> {
  const paths = [...new Set(definition.skills.map((path) => path.replace(/\/+$/, "")))];
  const found = await Promise.all(paths.slice(0, MOST).map((path) => readSkill(agents, id, path)));
  const skills = new Map<string, Skill>();
  for (const [at, path] of paths.entries()) {
    const skill = found[at];
    if (skill && !skills.has(skill.name)) skills.set(skill.name, skill);
    else leftOut(path);
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

async function readSkill(agents: Pick<ports.Agents, "skillFile">, id: string, path: string): Promise<Skill | undefined> {
  try {
    const text = await agents.skillFile?.(id, path, "SKILL.md");
    const head = text === undefined ? undefined : readSkillHead(text);
    return head && head.name === path.split("/").at(-1) ? { ...head, path } : undefined;
  } catch (error) {
    if (error instanceof ports.AgentsUnavailable) return undefined;
    throw error;
  }
}
