import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_WORKFLOW, type ClusterPlace, clusterPlace, type RunningCluster, startCluster } from "../harness/cluster.ts";
import { hasOpenssl, makeCertificate, type OwnCertificate } from "../harness/own-certificate.ts";
import { startPortico, temporaryFolder } from "../harness/portico-process.ts";
import { hasPostgresServer, type PostgresServer, postgresServer } from "../harness/postgres-server.ts";
import { hasRedisServer, type OwnRedis, ownRedis } from "../harness/redis.ts";

const first = await clusterPlace();
await first?.remove();

describe.skipIf(!first || !hasPostgresServer() || !hasRedisServer() || !hasOpenssl())("cluster.tls", () => {
  const folders = Array.from({ length: 3 }, temporaryFolder);
  const [theirs, ours, foreign] = folders.map(({ path }) => makeCertificate(path, ["DNS:localhost"])) as OwnCertificate[];
  let postgres: PostgresServer;
  let redis: OwnRedis;
  let place: ClusterPlace;
  beforeAll(async () => {
    const settings = { ssl: "on", ssl_cert_file: "server.pem", ssl_key_file: "server.key", ssl_ca_file: "clients.pem" };
    const files = { "server.pem": theirs!.certificate, "server.key": theirs!.key, "clients.pem": ours!.certificate };
    // `portico-test` is the name in every certificate that the tests make.
    const access = ["hostssl all postgres 127.0.0.1/32 trust", "hostssl all portico-test 127.0.0.1/32 cert"];
    postgres = await postgresServer({ settings, files, access });
    const admin = {
      connectionString: `postgres://postgres@localhost:${postgres.port}/postgres`,
      ssl: { ca: theirs!.certificate },
    };
    const client = new Client(admin);
    await client.connect();
    await client.query('CREATE ROLE "portico-test" LOGIN SUPERUSER');
    await client.end();
    redis = await ownRedis({
      settings: [
        ...["--tls-port", "PORT", "--tls-cert-file", theirs!.certificateFile, "--tls-key-file", theirs!.keyFile],
        ...["--tls-ca-cert-file", ours!.certificateFile, "--tls-auth-clients", "yes"],
      ],
      connection: { host: "localhost", tls: { ca: theirs!.certificate, cert: ours!.certificate, key: ours!.key } },
    });
    place = (await clusterPlace({
      PORTICO_POSTGRES_URL: `postgres://portico-test@localhost:${postgres.port}/postgres`,
      PORTICO_REDIS_URL: `rediss://localhost:${redis.port}`,
    }))!;
    write("documents/workflows/greet.json", { nodes: { a: { type: "transform", with: { value: 1 } } } });
  }, 120_000);
  afterAll(async () => {
    await place?.remove();
    await redis?.[Symbol.asyncDispose]();
    await postgres?.[Symbol.asyncDispose]();
    folders.forEach((folder) => folder.remove());
  });

  const tls = () => ({ ca: theirs!.certificate, cert: ours!.certificate, key: { file: ours!.keyFile } });
  function write(name: string, content: object): string {
    const path = join(place.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(content), { mode: 0o600 });
    return path;
  }
  const use = (config: object) => write("portico.config.json", { cluster: { tls: config } });
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await place.run(...args);
    expect([args, code, stderr]).toEqual([args, 0, ""]);
    return stdout;
  };
  const wrongOf = async (): Promise<{ about: string; message: string }[]> => {
    const { stdout } = await place.run("doctor", "--json");
    return (JSON.parse(stdout) as { about: string; message: string; isWrong: boolean }[]).filter(({ isWrong }) => isWrong);
  };

  it("lets migrate, move, documents, token, doctor and processes use servers that ask for a client certificate", async () => {
    // What is moved, with settings of its own.
    const local = await startPortico({ cwd: place.folder });
    await local.token("demo");
    await local.stop();
    use(tls());
    await run("migrate");
    await run("move", "--from", ".portico");
    await run("documents", "push", "documents");
    expect(JSON.parse(await run("token", "list", "--json"))).toHaveLength(1);
    // The harness starts the server with `fsync = off`.
    expect(await wrongOf()).toEqual([
      expect.objectContaining({ about: "PostgreSQL", message: expect.stringContaining("a crash") }),
    ]);

    const cluster: RunningCluster = await startCluster({ ...place, remove: async () => {} }, { count: 2 });
    const headers = { "x-workflow-service-token": CLUSTER_WORKFLOW, "content-type": "application/json" };
    const url = `${cluster.url("workflow")}/api/workflow`;
    const accepted = await fetch(`${url}/webhook?id=greet`, { method: "POST", headers, body: "{}" });
    expect(accepted.status).toBe(200);
    const { runId } = (await accepted.json()) as { runId: string };
    const statusOf = async () => ((await (await fetch(`${url}/greet/runs/${runId}`, { headers })).json()) as any).status;
    await expect.poll(statusOf).toBe("completed");
    await cluster[Symbol.asyncDispose]();
  });

  it.each([
    [
      "an authority that did not sign the servers' certificates",
      () => ({ ...tls(), ca: foreign!.certificate }),
      69,
      /SELF_SIGNED|SIGNATURE/,
    ],
    [
      "a client certificate that the servers do not know",
      () => ({ ...tls(), cert: foreign!.certificate, key: { file: foreign!.keyFile } }),
      69,
      /./,
    ],
    ["no client certificate", () => ({ ca: theirs!.certificate }), 69, /28000/],
    ["a key of another certificate", () => ({ ...tls(), key: { file: foreign!.keyFile } }), 78, /^cluster\.tls: /],
    ["a ca that is no certificate", () => ({ ...tls(), ca: "nonsense" }), 78, /^cluster\.tls: /],
  ])("%s: the start and commands end with a line, and doctor reports it", async (_, config, exitCode, line) => {
    use(config());
    for (const args of [["start", "cluster", "--json"], ["migrate"], ["token", "list"]]) {
      const { code, stdout, stderr } = await place.run(...args);
      expect([args, code, stdout]).toEqual([args, exitCode, ""]);
      expect(stderr).toMatch(line);
      expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    }
    const about = (await wrongOf()).map((each) => each.about);
    expect(about).toEqual(exitCode === 78 ? ["cluster"] : ["PostgreSQL", "Redis"]);
  });

  it("a wrong authority for Redis alone ends the start with a line, too", async () => {
    use(tls());
    await run("migrate");
    const folder = temporaryFolder();
    const other = makeCertificate(folder.path, ["DNS:localhost"]);
    await using untrusted = await ownRedis({
      settings: [
        ...["--tls-port", "PORT", "--tls-cert-file", other.certificateFile, "--tls-key-file", other.keyFile],
        ...["--tls-ca-cert-file", ours!.certificateFile, "--tls-auth-clients", "yes"],
      ],
      connection: { host: "localhost", tls: { ca: other.certificate, cert: ours!.certificate, key: ours!.key } },
    });
    write("portico.config.json", { cluster: { tls: tls(), redis: { url: `rediss://localhost:${untrusted.port}` } } });
    const { PORTICO_REDIS_URL: _, ...env } = place.env;
    const { code, stderr } = await startPortico({ cwd: place.folder, args: ["cluster"], env }).then(
      async (service) => ({ code: await service.stop(), stderr: "" }),
      (error: Error) => ({ code: 69, stderr: error.message }),
    );
    expect([code, stderr]).toEqual([
      69,
      expect.stringMatching(/ended with 69: Redis cannot be reached.*\((?:\w*SELF_SIGNED\w*|UNABLE\w*)\)/),
    ]);
    folder.remove();
  });
});
