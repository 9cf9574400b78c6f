import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** The ports for whose adapters `portico new` has a template. */
export const TEMPLATE_PORTS = ["blobs", "identity", "models", "records", "tools", "workflow-nodes"];

/** The files that `portico new` made in a folder, in order, without installed packages. Empty without the folder. */
export function filesBelow(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return (readdirSync(folder, { recursive: true }) as string[])
    .filter((file) => statSync(join(folder, file)).isFile() && !file.includes("node_modules"))
    .toSorted();
}
