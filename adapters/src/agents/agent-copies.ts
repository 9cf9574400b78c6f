import { join } from "node:path";
import { ports, withoutEnd } from "@portico/core";
import { listFolder } from "../documents/unstorage/list-folder.ts";
import { readAgentText } from "./agent-file.ts";
import { skillFolder } from "./skill-file.ts";

/** Maximum segments of a file's path below its skill's folder. */
const SKILL_DEPTH = 8;
const AGENT_FILE = /^([^/]+)\/agent\.json$/;

/** Where agents are read that are to be copied. */
export interface AgentCopiesGiven {
  readonly documents: Pick<ports.Documents, "list" | "read">;
  /** The folder with one folder per agent, if the documents are files. Skills are looked for there, and not in the list of documents. */
  readonly directory?: string | undefined;
  /** Is told the name of each file of a skill that no turn can read: no text, or over 1 MiB. `read` does not find it. */
  readonly leftOut?: (name: string) => void;
}

/**
 * The documents of agents that belong in a copy: each `agent.json`, and the files of the skills that it lists. Other files of an agent's folder
 * belong to the agent itself. `list` and `read` throw DocumentsUnavailable; `read` does so only for an `agent.json`.
 */
export function agentCopies({
  documents,
  directory,
  leftOut = () => {},
}: AgentCopiesGiven): Pick<ports.Documents, "list" | "read"> {
  const skillsOf = async (name: string, id: string): Promise<readonly string[]> => {
    const text = await readable(documents, name);
    const paths = text === undefined ? [] : readAgentText(id, text).definition.skills;
    return paths.map((path) => withoutEnd(path, "/")).filter((path) => ports.isDocumentName(`${id}/${path}`));
  };
  return {
    async list() {
      const all = await documents.list();
      const found = new Set<string>();
      for (const name of all) {
        const id = AGENT_FILE.exec(name)?.[1];
        if (id === undefined) continue;
        found.add(name);
        for (const skill of await skillsOf(name, id)) {
          const prefix = `${id}/${skill}/`;
          const files = directory === undefined ? all : await filesOf(join(directory, id), skill, prefix);
          for (const file of files) if (file.startsWith(prefix)) found.add(file);
        }
      }
      return [...found].toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
    },
    async read(name) {
      if (AGENT_FILE.test(name)) return documents.read(name);
      try {
        const found = await documents.read(name);
        if (!found || Buffer.byteLength(found.text) <= ports.SKILL_FILE_BYTES) return found;
      } catch (error) {
        if (!(error instanceof ports.DocumentsUnavailable)) throw error;
      }
      leftOut(name);
      return undefined;
    },
  };
}

/** An `agent.json` that cannot be read is told when it is copied. Its skills are not known. */
async function readable(documents: Pick<ports.Documents, "read">, name: string): Promise<string | undefined> {
  try {
    return (await documents.read(name))?.text;
  } catch (error) {
    if (error instanceof ports.DocumentsUnavailable) return undefined;
    throw error;
  }
}

async function filesOf(agent: string, skill: string, prefix: string): Promise<readonly string[]> {
  try {
    const folder = await skillFolder(agent, skill);
    if (folder === undefined) return [];
    return (await listFolder(folder, SKILL_DEPTH)).map((file) => prefix + file).filter(ports.isDocumentName);
  } catch (cause) {
    throw new ports.DocumentsUnavailable("The folder of a skill cannot be listed", { cause });
  }
}
