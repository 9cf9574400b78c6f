import { createWriteStream } from "node:fs";
import { mkdir, open, stat, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const OWNER_ONLY = 0o600;
const HELD_CHARACTERS = 64 * 1024;

/** A new folder of files with one line of JSON per item, and of other files. Only its owner can read it. */
export interface LineFiles {
  /** Add a line to `NAME.jsonl`. */
  add(name: string, item: object): Promise<void>;
  /** Write a file of a subfolder from a stream. */
  addFile(folder: string, name: string, bytes: Readable): Promise<void>;
  /** Whether a file was added. */
  hasFile(folder: string, name: string): Promise<boolean>;
  /** Write all that is held, and a last file: a folder without it is not complete. */
  finish(name: string, content: object): Promise<void>;
  close(): Promise<void>;
}

/** Throws the error of the file system, for example if the folder exists. */
export async function createLineFiles(dir: string): Promise<LineFiles> {
  await mkdir(dir, { mode: 0o700 });
  const files = new Map<string, { readonly handle: FileHandle; held: string }>();
  const folders = new Set<string>();

  const fileOf = async (name: string) => {
    const known = files.get(name);
    if (known) return known;
    const made = { handle: await open(join(dir, `${name}.jsonl`), "wx", OWNER_ONLY), held: "" };
    files.set(name, made);
    return made;
  };
  const close = async () => {
    await Promise.all([...files.values()].map(({ handle }) => handle.close()));
    files.clear();
  };
  return {
    async add(name, item) {
      const file = await fileOf(name);
      file.held += `${JSON.stringify(item)}\n`;
      if (file.held.length < HELD_CHARACTERS) return;
      const text = file.held;
      file.held = "";
      await file.handle.appendFile(text);
    },
    async addFile(folder, name, bytes) {
      if (!folders.has(folder)) await mkdir(join(dir, folder), { mode: 0o700 });
      folders.add(folder);
      await pipeline(bytes, createWriteStream(join(dir, folder, name), { flags: "wx", mode: OWNER_ONLY, flush: true }));
    },
    hasFile: (folder, name) =>
      stat(join(dir, folder, name)).then(
        () => true,
        () => false,
      ),
    async finish(name, content) {
      for (const { handle, held } of files.values()) {
        await handle.appendFile(held);
        await handle.sync();
      }
      await close();
      const last = await open(join(dir, name), "wx", OWNER_ONLY);
      try {
        await last.writeFile(`${JSON.stringify(content, null, 2)}\n`);
        await last.sync();
      } finally {
        await last.close();
      }
    },
    close,
  };
}
