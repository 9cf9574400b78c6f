import { createHash, randomBytes } from "node:crypto";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { recordSecrets } from "@portico/adapters/secrets/records";
import { randomIds } from "@portico/adapters/ids/random";
import { demo } from "@portico/adapters/models/demo";
import { createApp, createSystemClock, ports, Secret } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { afterAll, describe, expect, it } from "vitest";
import { postgresDatabase } from "../harness/postgres.ts";

const database = await postgresDatabase();
afterAll(() => database?.drop());

describe.skipIf(!database)("a safe token in PostgreSQL (open points 2)", () => {
  it("is its SHA-256, and the value is in no row", async () => {
    await using app = await createApp({
      name: "proxy-of-a-cluster",
      adapters: [
        postgresRecords({ url: database!.url }),
        recordSecrets({ key: new Secret(randomBytes(32).toString("base64url")) }),
        randomIds(),
        demo({}),
      ],
      plugins: [modelProxy({})],
    });
    const tokens = createSafeTokens({
      ...{ records: app.port(ports.records), secrets: app.port(ports.secrets) },
      ...{ clock: createSystemClock(), ids: app.port(ports.ids) },
    });
    const token = (await tokens.issue({ providerId: "demo", label: "laptop" })).token.reveal();
    const stored = await storedText();
    expect(stored).toContain("laptop");
    expect(stored).toContain(createHash("sha256").update(token).digest("hex"));
    expect(stored).not.toContain(token.slice("service_".length));
  });
});

/** All rows of all tables, as text. */
async function storedText(): Promise<string> {
  const tables = await database!.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'portico'");
  const rows = await Promise.all(tables.map(({ name }) => database!.query(`SELECT t::text AS row FROM portico."${name}" t`)));
  return rows
    .flat()
    .map(({ row }) => row as string)
    .join("\n");
}
