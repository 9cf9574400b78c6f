import { ports, withoutEnd } from "@portico/core";
import { readSkillHead, type SkillFault, type SkillHead } from "./skill-head.ts";

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
