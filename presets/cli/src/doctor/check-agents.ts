import { join } from "node:path";
import {
  type AgentTextOf,
  checkAgentText,
  listAgentTexts,
  readAgentDocuments,
  readSkillFile,
} from "@portico/adapters/stores/agent-documents";
import { createSystemClock, nearestWord, ports } from "@portico/core";
import { SchemaChecks } from "@portico/core/kit";
import { checkText, namedProblems } from "@portico/operator/agent-documents/check-text";
import { type AskedToolSource, findAgentProblems } from "@portico/plugins/conversations-runs/agent-problems";
import { agentsAt, placeInWords } from "@portico/presets/settings/documents-place";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { mayHaveOwnTools } from "../instance-stores.ts";
import type { ReadSettings } from "../read-settings.ts";
import { AGENT_TOOLS, INSTANCE_TOOLS } from "../workflows/node-rules.ts";
import { checkFolder, doubtful, type Finding, fine, wrong } from "./finding.ts";
import type { ServerTools } from "./check-mcp-servers.ts";
import { unreachable } from "./unreachable-limits.ts";

const ABOUT = "agents";
/** Longest wait for the check of one agent. */
const CHECK_MS = 10_000;

type Servers = ReadonlyMap<string, ServerTools>;

interface Lacking {
  readonly servers: Servers;
  readonly dir: string | undefined;
  /** The preset has adapters of its own, whose tools are not known. */
  readonly hasOwnTools: boolean;
  readonly turns: Pick<ports.BackgroundTurns, "problems">;
}

/** Checks that the agents' documents can be read, and what is in them. `servers` are the tools of each MCP server. */
export async function checkAgents(read: ReadSettings, servers: Servers): Promise<readonly Finding[]> {
  const { settings } = read;
  const place = agentsAt(settings.agent);
  const words = placeInWords(place);
  const hasOwnTools = mayHaveOwnTools(settings);
  const missing = checkFolder(read, "agent.agentsDir", place);
  if (missing.length > 0) return missing;
  try {
    const agents = await listAgentTexts(place);
    // A folder that does not exist has no agents.
    if ("dir" in place && agents.length === 0) return [];
    const dir = "dir" in place ? place.dir : undefined;
    const faults: Finding[] = [];
    const documents = await readAgentDocuments(place);
    const checks = new SchemaChecks(createSystemClock());
    const given = {
      agents: {
        skillFile: (...file: readonly [id: string, skill: string, file: string]) =>
          readSkillFile({ documents, directory: dir }, file),
      },
      tools: listedSources(servers),
      checks,
    };
    const turns = { problems: (agent: ports.CheckedAgent, signal: AbortSignal) => findAgentProblems(given, signal)(agent) };
    try {
      for (const agent of agents) {
        faults.push(...faultsOf(agent, dir), ...(await lacksOf(agent, { servers, dir, hasOwnTools, turns })));
        faults.push(...unreachableOf(agent, settings));
      }
    } finally {
      await Promise.all([checks.close(), documents.close()]);
    }
    return [fine(ABOUT, `${agents.length} in ${words}`), ...faults];
  } catch (error) {
    if (!(error instanceof ports.DocumentsUnavailable)) throw error;
    return [wrong(ABOUT, `${words} cannot be read: ${error.message}`, "correct agent.documents, or start that store")];
  }
}

/** Each fault of an `agent.json` with its place and its key. */
function faultsOf({ id, text, metadataError, fault, unknownKeys }: AgentTextOf, dir: string | undefined): readonly Finding[] {
  const about = `agent ${id}`;
  const file = dir === undefined ? "agent.json" : join(dir, id, "agent.json");
  if (fault !== undefined) return [wrong(about, `its agent.json ${fault}`, `save ${file} as UTF-8`)];
  const problems = metadataError
    ? checkText({ check: checkAgentText }, { text, before: text, userId: undefined }).filter(
        ({ severity }) => severity === "error",
      )
    : [];
  return [
    ...problems.map(({ line, column, path, message }) =>
      wrong(
        about,
        `agent.json:${line}:${column}: ${path}: ${message}`,
        `correct line ${line} of ${file}; docs/agent.schema.json has all keys`,
      ),
    ),
    ...(unknownKeys ? [doubtful(about, `keys of its agent.json have no effect: ${unknownKeys.join(", ")}`)] : []),
  ];
}

/** What an agent's turns would not get, in the words of the service. */
async function lacksOf(agent: AgentTextOf, { servers, dir, hasOwnTools, turns }: Lacking): Promise<readonly Finding[]> {
  const { id, text } = agent;
  const problems = await namedProblems(turns, id, text, AbortSignal.timeout(CHECK_MS));
  return problems.map((named) => {
    const [placed] = checkText({ check: () => [] }, { text, before: text, userId: undefined, named: [named] });
    const { line, column, path, message } = placed!;
    const said = `agent.json:${line}:${column}: ${path}: ${message}`;
    const about = `agent ${id}`;
    const isTool = named.path.includes("tools");
    if (isTool && hasOwnTools) return doubtful(about, `${said}; the preset's own adapters may have it`);
    if (isTool && servers.get(named.name.split("/", 1)[0]!)?.isUnknown)
      return doubtful(about, `${said}; its MCP server uses an account, and was not asked`);
    if (isTool) return wrong(about, said, fixOfTool(named.name, servers));
    const [key] = named.path;
    if (key === "resources" || key === "prompts") return doubtful(about, said);
    if (key === "outputSchema") return wrong(about, said, `correct line ${line} of the agent.json`);
    const file = dir === undefined ? `${named.name}/SKILL.md` : join(dir, id, named.name, "SKILL.md");
    return wrong(about, said, `correct ${file}, or remove its folder from the agent's "skills"`);
  });
}

function fixOfTool(tool: string, servers: Servers): string {
  const [id = ""] = tool.split("/", 1);
  const server = tool.includes("/") ? servers.get(id) : undefined;
  if (server && !server.ids) return `mend the MCP server "${id}": its own line says how`;
  if (tool.includes("/") && !server) return `add the server "${id}" to mcpServers, or remove the tool from the agent's "tools"`;
  if (server?.problems.some(({ toolId }) => toolId === tool))
    return `correct the tool in its server, or remove it from the agent's "tools"`;
  const known = [...AGENT_TOOLS, ...INSTANCE_TOOLS, ...[...servers.values()].flatMap(({ ids }) => ids ?? [])];
  const nearest = nearestWord(tool, known);
  return nearest === undefined ? `remove it from the agent's "tools"` : `write "${nearest}"`;
}

/** The tools of the instance and of its MCP servers, as they were listed. */
function listedSources(servers: Servers): readonly AskedToolSource[] {
  const listed = (ids: readonly string[]) => ids.map((id) => ({ id }));
  return [
    { id: "instance", list: async () => listed(INSTANCE_TOOLS) },
    ...[...servers].map(([id, { ids, problems }]) => ({
      id,
      owns: (toolId: string) => toolId.startsWith(`${id}/`),
      problems: () => problems,
      async list() {
        if (!ids) throw new ports.ToolsUnavailable(`MCP server "${id}" does not answer`);
        return listed(ids);
      },
    })),
  ];
}

function unreachableOf({ id, definition }: AgentTextOf, { limits, prices }: PlatformSettings): readonly Finding[] {
  const scopes = { "limits.agent": limits.agent, "limits.instance": limits.instance };
  return unreachable(definition.limits ?? {}, "limits", scopes, prices !== undefined).map((message) =>
    doubtful(`agent ${id}`, message),
  );
}
