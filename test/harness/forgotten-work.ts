import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Client } from "pg";
import { memberPlaceOf } from "./member-place.ts";
import { isClusterRun } from "./members.ts";

/** Let the engine of a service that is closed forget all work of a kind, as if its memory had ended. */
export async function forgetWork(dataDir: string, kind: string): Promise<void> {
  if (!isClusterRun) {
    const database = new DatabaseSync(join(dataDir, "records.sqlite"));
    database.prepare(`DELETE FROM "_engine_work" WHERE kind = ?`).run(kind);
    database.close();
    return;
  }
  const { postgresUrl, schema } = await memberPlaceOf(dataDir);
  const client = new Client({ connectionString: postgresUrl });
  await client.connect();
  await client.query(`DELETE FROM "${schema}"."_engine_work" WHERE kind = $1`, [kind]);
  await client.end();
}
