import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ports } from "@portico/core";
import { isAbsent } from "../documents/unstorage/real-path.ts";
import { skillFolder } from "./skill-file.ts";

/** A folder with this file is a skill. */
const FILE = "SKILL.md";
/** Maximum skills that are listed. */
const MOST = 200;
/** Maximum folders that are looked into: an agent's folder may be a repository with its dependencies. */
const FOLDERS = 2_000;
/** Levels of folders. */
const DEPTH = 4;

/** Implements `Agents.skillPaths`: from the folder if the agents are files, otherwise from the names of their documents. */
export async function findSkillPaths(
  { documents, directory }: { readonly documents: Pick<ports.Documents, "list">; readonly directory: string | undefined },
  id: string,
): Promise<readonly string[]> {
  if (!ports.AGENT_ID.test(id)) return [];
  try {
    const paths = directory === undefined ? namedBelow(id, await documents.list()) : await foldersBelow(join(directory, id));
    return paths.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))).slice(0, MOST);
  } catch (cause) {
    throw new ports.AgentsUnavailable("The skills of an agent cannot be listed", { cause });
  }
}

function namedBelow(id: string, names: readonly string[]): readonly string[] {
  const end = `/${FILE}`;
  return names
    .filter((name) => name.startsWith(`${id}/`) && name.endsWith(end) && name.length > id.length + 1 + end.length)
    .map((name) => name.slice(id.length + 1, -end.length));
}

async function foldersBelow(agent: string): Promise<readonly string[]> {
  const found: string[] = [];
  let level: readonly string[] = [""];
  let looked = 0;
  for (let depth = 0; depth <= DEPTH && level.length > 0; depth++) {
    const inner: string[] = [];
    for (const path of level) {
      if (++looked > FOLDERS) return found;
      const entries = await entriesOf(join(agent, path));
      if (path !== "" && entries.some(({ name }) => name === FILE)) found.push(path);
      for (const entry of entries) {
        const child = path === "" ? entry.name : `${path}/${entry.name}`;
        // Hidden folders are not documents.
        if (!ports.isDocumentName(child)) continue;
        if (entry.isDirectory()) inner.push(child);
        // A link may lead to another folder of the agent. What is below that folder is found there: links may be circular.
        else if (entry.isSymbolicLink() && (await isSkill(agent, child))) found.push(child);
      }
    }
    level = inner;
  }
  return found;
}

async function isSkill(agent: string, path: string): Promise<boolean> {
  const folder = await skillFolder(agent, path);
  return folder !== undefined && (await entriesOf(folder)).some(({ name }) => name === FILE);
}

async function entriesOf(path: string) {
  try {
    return await readdir(path, { withFileTypes: true });
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}
