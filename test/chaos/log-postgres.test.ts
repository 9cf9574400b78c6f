import { postgresLog } from "@portico/cluster/log/postgres";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { afterAll, describe } from "vitest";
import { postgresDatabase } from "../harness/postgres.ts";
import { survivesKills } from "./kill-log.ts";

const database = await postgresDatabase();
afterAll(() => database?.drop());

describe.skipIf(!database)("with a PostgreSQL server", () => {
  const url = database?.url ?? "";
  survivesKills(url, postgresLog({}), [postgresRecords({ url })]);
});
