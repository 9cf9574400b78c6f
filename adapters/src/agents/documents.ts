import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { defineAdapter, optional, ports } from "@portico/core";
import { type AgentText, readAgentText, unreadAgent } from "./agent-file.ts";
import { agentTexts } from "./agent-texts.ts";
import { readSkillFile } from "./skill-file.ts";
import { findSkillPaths } from "./skill-paths.ts";
import { GitStates } from "./git-state.ts";

/** Options of `documentAgents`. */
export interface DocumentAgentsOptions {
  /**
   * The folder with one folder per agent, if the documents are files. Used for git states, and for agent folders without a file.
   * Without it there is no git state.
   */
  readonly directory?: string;
  /** ID of the source of documents that has the agents. Default: `agents`. */
  readonly source?: string;
}

const FILE = "agent.json";
/** Maximum agents that are read at once. */
const READ_AT_ONCE = 16;

/**
 * Agents whose `agent.json` are documents named `ID/agent.json`. Parsed agents are cached until the documents report a change. With documents
 * that other processes write, too, `find` compares the cached agent with its document each time.
 * Opening throws TypeError if no source of documents has that ID.
 */
export const documentAgents = defineAdapter({
  name: "agents/documents",
  port: ports.agents,
  needs: { documents: ports.documents, clock: ports.clock, telemetry: optional(ports.telemetry) },
  async open(
    { documents: sources, clock, telemetry },
    { directory, source = "agents" }: DocumentAgentsOptions,
    scope,
  ): Promise<ports.Agents> {
    const documents = sources.find(({ id }) => id === source);
    if (!documents) throw new TypeError(`No source of documents is called ${source}`);
    const closing = new AbortController();
    const git = new GitStates(clock, closing.signal);
    scope.onClose(async () => {
      closing.abort();
      await git.settled();
    });

    const read = new Map<string, ReadAgent>();
    let changes = 0;
    const stopWatching = await documents.watch((name) => {
      changes++;
      read.delete(name.split("/", 1)[0]!);
    });
    scope.onClose(stopWatching);

    const tellUnknown = (id: string, { unknownKeys }: AgentText): void => {
      if (unknownKeys) telemetry?.log.warn("Keys of an agent.json have no effect", { agent: id, keys: unknownKeys.join(", ") });
    };
    const isFolder = async (path: string): Promise<boolean> => {
      if (directory !== undefined) return (await stat(join(directory, path)).catch(() => undefined))?.isDirectory() ?? false;
      return (await namesOf(documents)).some((name) => name.startsWith(`${path}/`));
    };
    /** Of an agent without a document: its folder may be empty, or have a folder of the document's name. */
    const withoutFile = async (id: string): Promise<AgentText | undefined> => {
      if (await isFolder(`${id}/${FILE}`)) return unreadAgent(id, "unreadable");
      return (await isFolder(id)) ? unreadAgent(id, "missing") : undefined;
    };
    const readAgent = async (id: string, isExact: boolean): Promise<AgentText | undefined> => {
      const known = read.get(id);
      if (known && !isExact) return known.agent;
      const before = changes;
      const found = await readOne(documents, id, known);
      // A folder without the file is not cached: its removal is not reported.
      if (!found) return withoutFile(id);
      // An unreadable file is not cached either: its recovery is not reported.
      if (changes === before && found.agent.metadataError !== "unreadable") read.set(id, found);
      if (found !== known) tellUnknown(id, found.agent);
      return found.agent;
    };
    // A document that another process saved counts from its answer on: a paused webhook accepts no event in any process.
    const find = async (
      id: string,
      { isExact = documents.isShared === true, withGit = true } = {},
    ): Promise<ports.Agent | undefined> => {
      const found = ports.AGENT_ID.test(id) ? await readAgent(id, isExact) : undefined;
      const hasState = withGit && directory !== undefined;
      return found && { id, ...found, git: hasState ? await git.of(join(directory, id)) : { hasGit: false } };
    };

    return {
      find: (id) => find(id),
      skillFile: (...place) => readSkillFile({ documents, directory }, place),
      skillPaths: (id) => findSkillPaths({ documents, directory }, id),
      texts: agentTexts({ documents, directory, file: FILE }),
      async list({ withGit } = {}) {
        const folders = directory === undefined ? [] : await foldersOf(directory);
        const named = (await namesOf(documents)).flatMap((name) => (name.includes("/") ? name.split("/", 1) : []));
        const ids = [...new Set([...folders, ...named])].filter((id) => ports.AGENT_ID.test(id)).toSorted();
        const agents: ports.Agent[] = [];
        for (let from = 0; from < ids.length; from += READ_AT_ONCE) {
          const found = await Promise.all(
            ids.slice(from, from + READ_AT_ONCE).map((id) => find(id, { isExact: false, withGit })),
          );
          agents.push(...found.filter((agent) => agent !== undefined));
        }
        return agents;
      },
    };
  },
});

interface ReadAgent {
  /** Of the document; undefined where it could not be read. */
  readonly version: string | undefined;
  readonly agent: AgentText;
}

/** An unchanged document is not parsed again. If it cannot be read now, its last known content counts. */
async function readOne(documents: ports.Documents, id: string, known: ReadAgent | undefined): Promise<ReadAgent | undefined> {
  try {
    const document = await documents.read(`${id}/${FILE}`);
    if (!document) return undefined;
    const { version, text } = document;
    return known?.version === version ? known : { version, agent: readAgentText(id, text) };
  } catch (error) {
    // One unreadable file must not hide the other agents.
    if (error instanceof ports.DocumentsUnavailable)
      return known ?? { version: undefined, agent: unreadAgent(id, "unreadable", error.fault) };
    throw error;
  }
}

async function namesOf(documents: ports.Documents): Promise<readonly string[]> {
  try {
    return await documents.list();
  } catch (cause) {
    throw new ports.AgentsUnavailable("The agents cannot be listed", { cause });
  }
}

async function foldersOf(directory: string): Promise<readonly string[]> {
  try {
    return (await readdir(directory, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    // A folder that does not exist yet has no agents.
    return [];
  }
}
