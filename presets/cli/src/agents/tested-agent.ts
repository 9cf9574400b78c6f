import { basename, dirname, resolve } from "node:path";
import { checkAgentText, readAgentDocuments, readSkillFile } from "@portico/adapters/stores/agent-documents";
import { readAgentText } from "@portico/adapters/agents/agent-file";
import { ports } from "@portico/core";
import type { TestedAgent } from "@portico/presets/platform/agent-tests/run-agent-case";
import { agentsAt, isInDatabase } from "@portico/presets/settings/documents-place";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readNamedFile } from "../read-options.ts";

/** An agent that can be tested until `close` is called. */
interface OpenAgent {
  readonly agent: TestedAgent;
  close(): Promise<void>;
}

const FILE = "agent.json";
/** The only engine whose model and tools a case can stand in for. */
const ENGINE = "loop";

/**
 * The agent that a file of cases names: by its id in the project, or by the path of its `agent.json`. Throws CommandFailed: 66 if it cannot be
 * read, 1 if it cannot be used.
 */
export async function openTestedAgent(
  named: string,
  { file, settings }: { readonly file: string; readonly settings: PlatformSettings },
): Promise<OpenAgent> {
  if (!ports.AGENT_ID.test(named)) return agentOfFile(file, resolve(dirname(file), named));
  if (isInDatabase(settings))
    throw new CommandFailed(
      `${file}: agent: The agents of this instance are in its database: name the path of an ${FILE}`,
      EXIT.failed,
    );
  const at = agentsAt(settings.agent);
  const directory = "dir" in at ? resolve(at.dir) : undefined;
  const documents = await readAgentDocuments(at);
  const close = () => documents.close();
  try {
    const document = await documents.read(`${named}/${FILE}`);
    if (!document) throw new CommandFailed(`${file}: agent: The project has no agent "${named}"`, EXIT.failed);
    return { agent: toAgent(file, named, document.text, { documents, directory }), close };
  } catch (error) {
    await close();
    if (!(error instanceof ports.DocumentsUnavailable)) throw error;
    throw new CommandFailed(`${file}: agent: The agent "${named}" cannot be read`, EXIT.noInput, error);
  }
}

async function agentOfFile(file: string, path: string): Promise<OpenAgent> {
  const text = await readNamedFile(path);
  const id = basename(dirname(path));
  if (basename(path) !== FILE || !ports.AGENT_ID.test(id))
    throw new CommandFailed(`${file}: agent: Expected the id of an agent, or a path that ends with ID/${FILE}`, EXIT.failed);
  const place = { documents: { read: async () => undefined }, directory: dirname(dirname(path)) };
  return { agent: toAgent(file, id, text, place), close: async () => {} };
}

function toAgent(file: string, id: string, text: string, place: Parameters<typeof readSkillFile>[0]): TestedAgent {
  const { definition, metadataError } = readAgentText(id, text);
  if (metadataError !== undefined) {
    const problems = checkAgentText(text).filter(({ severity }) => severity === "error");
    const lines = problems.map(({ path, message }) => `${file}: agent: ${id}/${FILE}: ${[...path, message].join(": ")}`);
    throw new CommandFailed(lines.join("\n") || `${file}: agent: ${id}/${FILE} cannot be used`, EXIT.failed);
  }
  if (definition.engine !== ENGINE)
    throw new CommandFailed(
      `${file}: agent: Expected an agent with the engine "${ENGINE}", got "${definition.engine}"`,
      EXIT.failed,
    );
  return { id, definition, text, skillFile: (...of) => readSkillFile(place, of) };
}
