import { describe, expect, it } from "vitest";
import { runCommand } from "../../harness/portico-process.ts";

const KEY = Buffer.alloc(32, 7).toString("base64url");
const complete = {
  PORTICO_POSTGRES_URL: "postgres://nobody@127.0.0.1:1/none",
  PORTICO_REDIS_URL: "redis://127.0.0.1:1",
  PORTICO_CLUSTER_BLOBS_DIR: "blobs",
  PORTICO_INSTANCE_KEY: KEY,
  PORTICO_AGENT_TOKENS: JSON.stringify([{ token: "owner-token-0123456789", userId: "owner", role: "owner" }]),
  WORKFLOW_SERVICE_TOKEN: "workflow-token-0123456789",
};

describe("portico start cluster", () => {
  it("names everything that the settings lack, one line each, with exit code 78", async () => {
    const { code, stdout, stderr } = await runCommand(["start", "cluster", "--json"]);
    expect([code, stdout]).toEqual([78, ""]);
    expect(stderr.trimEnd().split("\n")).toEqual([
      "cluster.postgres.url: the preset cluster needs PostgreSQL (PORTICO_POSTGRES_URL)",
      "cluster.redis.url: the preset cluster needs Redis (PORTICO_REDIS_URL)",
      "cluster.blobs: the preset cluster needs either s3 or directory, for attachments and media",
      "instance.key: the preset cluster needs the same key in every process (PORTICO_INSTANCE_KEY)",
      "agent.tokens: the preset cluster needs an owner's token, because a cluster creates no tokens",
      "workflow.token: the preset cluster needs a token (WORKFLOW_SERVICE_TOKEN), because a cluster creates no tokens",
    ]);
  });

  it.each([["AGENT"], ["WORKFLOW"]])("refuses documents of a driver for the area %s, with exit code 78", async (area) => {
    const env = { ...complete, [`PORTICO_${area}_DOCUMENTS_DRIVER`]: "redis" };
    const { code, stderr } = await runCommand(["start", "cluster"], { env });
    expect([code, stderr]).toEqual([
      78,
      `${area.toLowerCase()}.documents: in a cluster, cluster.documents says where documents are\n`,
    ]);
  });

  it("ends with exit code 69 and a line without the password where PostgreSQL is out of reach", async () => {
    const env = { ...complete, PORTICO_POSTGRES_URL: "postgres://someone:hidden-password@127.0.0.1:1/none" };
    const { code, stdout, stderr } = await runCommand(["start", "cluster", "--json"], { env });
    expect([code, stdout]).toEqual([69, ""]);
    expect(stderr).not.toContain("hidden-password");
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});
