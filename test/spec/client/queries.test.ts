import { hash } from "node:crypto";
import { requestDigest } from "@portico/client";
import { requestDigest as serverDigest } from "../../../plugins/src/conversations-runs/queries/request-digest.ts";
import fc from "fast-check";
import { expect, it } from "vitest";
import { queriesOver } from "./query-suite.ts";

queriesOver("socket-io");

it("the digest is that of the content's canonical JSON, on any connection (open points 7)", () => {
  const content = { prompt: "Zürich", options: { maxTurns: 1e1, agentId: "helper" } };
  const digest = `qrd1:${hash("sha256", '{"options":{"agentId":"helper","maxTurns":10},"prompt":"Zürich"}')}`;
  expect(requestDigest(content)).toBe(digest);
  expect(requestDigest({ originSocketId: "socket", ...content, requestDigest: digest })).toBe(digest);
});

it("the digest is the service's own, for any content", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ stringUnit: "binary" })), (body) => {
      expect(requestDigest(body)).toBe(serverDigest(body));
    }),
  );
});
