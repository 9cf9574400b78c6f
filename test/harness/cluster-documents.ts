import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ClusterPlace } from "./cluster.ts";

/** Make the schema, and put documents into the database: `{ "workflows/greet.json": { … } }`. */
export async function writeDocuments(place: ClusterPlace, documents: Readonly<Record<string, object>>): Promise<void> {
  for (const [name, content] of Object.entries(documents)) {
    const path = join(place.folder, "documents", name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(content));
  }
  for (const args of [["migrate"], ["documents", "push", "documents"]]) {
    const { code, stderr } = await place.run(...args);
    if (code !== 0) throw new Error(stderr);
  }
}
