import type { DatabaseSync } from "node:sqlite";
import { ports } from "@portico/core";
import { checkCollection } from "../collection-shape.ts";
import { patiently } from "./busy.ts";
import { inOneCommit } from "./in-one-commit.ts";
import { openTable } from "./table.ts";

/**
 * If the store's version is lower than `marked`, record that versions are missing, so that later starts see it, too. New versions
 * continue after those that were given before. Throws errors of SQLite.
 */
export function noteLoss(database: DatabaseSync, marked: number | undefined): void {
  if (marked === undefined || versionOf(database) >= marked) return;
  const losses = openTable(database, checkCollection({ name: ports.STORE_LOSSES }));
  patiently(() =>
    inOneCommit(database, () => {
      // Another process may have recorded it meanwhile.
      const version = versionOf(database);
      if (version >= marked) return;
      const loss: ports.StoreLoss = { from: version + 1, to: marked };
      losses.apply(
        { collection: ports.STORE_LOSSES, id: `${marked}`, text: JSON.stringify(loss), expected: undefined },
        marked + 1,
      );
      database.prepare(`UPDATE "_store" SET version = ?`).run(marked + 1);
    }),
  );
}

function versionOf(database: DatabaseSync): number {
  return Number(database.prepare(`SELECT version FROM "_store"`).get()?.["version"]);
}
