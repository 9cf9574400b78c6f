import { isFileId } from "./file-id.ts";

/** The ids of files that a JSON value names: of each object with such an id as `file`. */
export function filesIn(value: unknown): ReadonlySet<string> {
  const found = new Set<string>();
  const open: unknown[] = [value];
  while (open.length > 0) {
    const each = open.pop();
    if (typeof each !== "object" || each === null) continue;
    if ("file" in each && isFileId(each.file)) found.add(each.file);
    // A spread of a long list would use up the stack.
    for (const inner of Object.values(each)) open.push(inner);
  }
  return found;
}
