import { stat } from "node:fs/promises";

/**
 * Notices changes of files, also if the file is a link that then leads to another file, as Kubernetes and systemd replace secrets. A change
 * counts when the file is the same at two looks: a file that is written in place may be half full at the first.
 */
export class SettledFiles {
  #accepted: ReadonlyMap<string, string> = new Map();
  #seen: ReadonlyMap<string, string> = new Map();

  /**
   * Whether files have changed since a look returned true. The first time, it returns true, too: a file may have changed since it was read
   * before the first look. Later changes, also of this moment, are found by the next looks.
   */
  async look(files: readonly string[]): Promise<boolean> {
    const marks = new Map<string, string>();
    // One after the other: the work at a time stays the same for any number of files.
    for (const file of new Set(files)) marks.set(file, await markOf(file));
    const changed = [...marks].filter(([file, mark]) => this.#accepted.get(file) !== mark);
    const isSettled = changed.length > 0 && changed.every(([file, mark]) => this.#seen.get(file) === mark);
    this.#seen = marks;
    if (isSettled) this.#accepted = marks;
    return isSettled;
  }
}

/** Differs for each content of a file, because every write sets its times. Says why a file cannot be found. */
async function markOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unreadable";
  }
}
