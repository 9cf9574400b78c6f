import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_OWNER, clusterPlace } from "../harness/cluster.ts";
import { type FailingCluster, startFailingCluster } from "../harness/failing-cluster.ts";
import { startS3Store, type S3Store } from "../harness/s3-store.ts";
import { openTcpLine, type TcpLine } from "../harness/tcp-line.ts";

const first = await clusterPlace();
await first?.remove();

describe.skipIf(!first)("what a cluster does while S3 is away", () => {
  let store: S3Store;
  let line: TcpLine;
  let failing: FailingCluster;
  beforeAll(async () => {
    store = await startS3Store();
    line = await openTcpLine(Number(new URL(store.endpoint).port));
    const { options } = store.makeBucket();
    failing = await startFailingCluster({
      env: {
        PORTICO_S3_ENDPOINT: `http://127.0.0.1:${line.port}`,
        PORTICO_S3_BUCKET: options.bucket,
        PORTICO_S3_REGION: options.region!,
        PORTICO_S3_ACCESS_KEY_ID: options.accessKeyId.reveal(),
        PORTICO_S3_SECRET_ACCESS_KEY: options.secretAccessKey.reveal(),
        PORTICO_S3_SILENCE_MS: "1000",
      },
    });
  }, 120_000);
  afterAll(async () => {
    await failing?.[Symbol.asyncDispose]();
    await line?.[Symbol.asyncDispose]();
    await store?.close();
  });

  const PIXEL = Buffer.from("R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==", "base64");
  const headers = { "x-agent-service-token": CLUSTER_OWNER };
  const upload = (path: string) => {
    const body = new FormData();
    body.append("file", new File([PIXEL], "pixel.gif", { type: "image/gif" }));
    return fetch(failing.cluster.url("agent") + path, { method: "POST", headers, body });
  };
  const told = async (answer: Response) => [
    answer.status,
    answer.ok ? undefined : ((await answer.json()) as { error: string }).error,
  ];
  const download = (path: string) => fetch(failing.cluster.url("agent") + path, { headers });

  const faults = [
    ["refuses connections", () => line.cut()],
    ["is silent", () => line.hold()],
  ] as const;

  it.each(faults)(
    "which %s: refuses uploads, downloads and queries with media, executes all else, and recovers",
    async (_, fail) => {
      const receipt = (await (await upload("/api/attachments")).json()) as { attachmentId: string; fileReference: string };
      const client = failing.client();
      const media = await client.uploadMedia(new File([PIXEL], "pixel.gif", { type: "image/gif" }));
      const { items } = await client.mediaLinks([media.mediaId]);
      const link = new URL(items[0]!.url).pathname + new URL(items[0]!.url).search;

      const refusals = failing.refusals.length;
      fail();
      expect(await told(await upload("/api/attachments"))).toEqual([503, "attachment_storage_unavailable"]);
      expect(await told(await upload("/api/media/upload"))).toEqual([500, "media_internal_error"]);
      expect(await told(await download(`/api/attachments/${receipt.attachmentId}`))).toEqual([
        503,
        "attachment_storage_unavailable",
      ]);
      expect(await told(await download(link))).toEqual([500, "media_internal_error"]);
      // The client submits it again until it is accepted.
      const withFile = client.submit({ agentId: "helper", prompt: "Look", mediaRefs: [media] });
      await expect.poll(() => failing.refusals.slice(refusals)).toContain("503 registry_unavailable");
      await failing.completed("slow", await failing.accept(4, "slow"));
      const without = await failing.beginTurn(client, "No file");
      failing.release();
      expect((await without.ended).end.status).toBe("completed");

      const asked = failing.asked();
      line.heal();
      expect((await upload("/api/attachments")).status).toBe(201);
      expect((await upload("/api/media/upload")).status).toBe(200);
      expect(Buffer.from(await (await download(`/api/attachments/${receipt.attachmentId}`)).arrayBuffer())).toEqual(PIXEL);
      expect(Buffer.from(await (await download(link)).arrayBuffer())).toEqual(PIXEL);
      await expect.poll(failing.asked).toBe(asked + 1);
      expect(await failing.lastAsked()).toContain(PIXEL.toString("base64"));
      failing.release();
      expect((await withFile.ended).status).toBe("completed");
    },
  );

  it.each(faults)("which %s: a process does not start, and says so with exit code 69", async (_, fail) => {
    fail();
    const { code, stderr } = await failing.cluster.place.run("start", "cluster", "--json");
    expect([code, stderr.trimEnd().split("\n")]).toEqual([69, [expect.stringContaining("blobs")]]);
    line.heal();
  });
});
