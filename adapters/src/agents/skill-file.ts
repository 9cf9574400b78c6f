import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ports } from "@portico/core";
import { isWithin, realPath } from "../documents/unstorage/real-path.ts";
import { readTextFile } from "../documents/unstorage/text-file.ts";

/** Implements `Agents.skillFile`: from the folder if the agents are files, otherwise from their documents. */
export async function readSkillFile(
  { documents, directory }: { readonly documents: Pick<ports.Documents, "read">; readonly directory: string | undefined },
  [id, skill, file]: readonly [id: string, skill: string, file: string],
): Promise<string | undefined> {
  const name = `${id}/${skill}/${file}`;
  // A valid name has no `..`, and no segment that begins with a dot.
  if (!ports.AGENT_ID.test(id) || ![skill, file, name].every(ports.isDocumentName)) return undefined;
  try {
    return directory === undefined ? await fromDocuments(documents, name) : await fromFolder(join(directory, id), skill, file);
  } catch (cause) {
    throw new ports.AgentsUnavailable("A file of a skill cannot be read", { cause });
  }
}

async function fromDocuments(documents: Pick<ports.Documents, "read">, name: string): Promise<string | undefined> {
  const text = (await documents.read(name))?.text;
  if (text !== undefined) assertSize(Buffer.byteLength(text));
  return text;
}

/** The real path of a skill's folder. Undefined if it does not exist, or is not inside of the agent's folder. */
export async function skillFolder(agent: string, skill: string): Promise<string | undefined> {
  const [outer, folder] = await Promise.all([realPath(agent), realPath(join(agent, skill))]);
  return outer !== undefined && folder !== undefined && isWithin(outer, folder) ? folder : undefined;
}

/** Links may lead anywhere inside of the skill's folder. */
async function fromFolder(agent: string, skill: string, file: string): Promise<string | undefined> {
  const [root, path] = await Promise.all([skillFolder(agent, skill), realPath(join(agent, skill, file))]);
  if (root === undefined || path === undefined || !isWithin(root, path)) return undefined;
  assertSize((await stat(path)).size);
  return readTextFile(path);
}

function assertSize(bytes: number): void {
  if (bytes > ports.SKILL_FILE_BYTES) throw new RangeError("A file of a skill is over 1 MiB");
}
