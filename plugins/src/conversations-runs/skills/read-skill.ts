import { ports } from "@portico/core";
import * as v from "valibot";
import { READ_CHARACTERS } from "../limits.ts";
import type { Skill } from "./agent-skills.ts";

/** Id of the tool that turns of agents with skills have in addition to their `tools`. */
export const READ_SKILL = "ReadSkill";

const readArguments = v.strictObject({
  skill: v.pipe(v.string(), v.nonEmpty()),
  file: v.optional(v.pipe(v.string(), v.nonEmpty()), "SKILL.md"),
  offset: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0)), 0),
});

const definition: ports.ToolDefinition = {
  id: READ_SKILL,
  name: READ_SKILL,
  description: `Reads the instructions of a skill, or another text file of it, in pieces of up to ${READ_CHARACTERS} characters.`,
  inputSchema: {
    type: "object",
    properties: {
      skill: { type: "string", minLength: 1, description: "Name of the skill" },
      file: { type: "string", minLength: 1, description: "Path of a file that its instructions name. Default: SKILL.md" },
      offset: { type: "integer", minimum: 0, description: "Characters to skip" },
    },
    required: ["skill"],
    additionalProperties: false,
  },
  riskLevel: "low",
  requiresConfirmation: false,
  idempotent: true,
};

/** Of a character of two, which goes whole into the next piece. */
const HALF_AT_END = /[\ud800-\udbff]$/;

/** The tool with which a turn reads the skills of its agent. No file outside of their folders can be read. */
export function skillTools(agents: Pick<ports.Agents, "skillFile">, agentId: string, skills: readonly Skill[]): ports.ToolSource {
  return {
    id: "skills",
    list: async () => (skills.length === 0 ? [] : [definition]),
    async call({ toolId, arguments: args }, signal) {
      signal.throwIfAborted();
      if (toolId !== READ_SKILL) throw new ports.ToolNotFound(`There is no tool "${toolId}" here`);
      const parsed = v.safeParse(readArguments, args);
      if (!parsed.success) throw new ports.ToolArgumentsInvalid("expected skill, and perhaps file and offset");
      const { skill: name, file, offset } = parsed.output;
      const skill = skills.find((each) => each.name === name);
      if (!skill) return failed("There is no such skill");
      const text = await textOf(agents, agentId, skill.path, file);
      if (text === undefined) return failed("The skill has no such text file");
      return { content: [{ type: "text", text: pieceOf(text, offset) }], isError: false };
    },
  };
}

async function textOf(agents: Pick<ports.Agents, "skillFile">, agentId: string, path: string, file: string) {
  try {
    return await agents.skillFile?.(agentId, path, file);
  } catch (error) {
    if (error instanceof ports.AgentsUnavailable) return undefined;
    throw error;
  }
}

/** What a model reads of a long text at once, with a note if more text follows. */
export function pieceOf(text: string, offset: number): string {
  const rest = text.length - offset;
  if (rest <= READ_CHARACTERS) return text.slice(offset);
  const piece = text.slice(offset, offset + READ_CHARACTERS).replace(HALF_AT_END, "");
  return `${piece}\n[${rest - piece.length} more characters: continue with offset ${offset + piece.length}]`;
}

function failed(text: string): ports.ToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
