import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { suiteFiles } from "./cluster/suites/on-cluster.ts";
import { inMemory } from "./harness/memory-folder.ts";
import { repeatedTests } from "./harness/repeated-tests.ts";

/** Files that change what all files of a process share, or that are about it. */
const ALONE = ["spec/{grammar,playground}/embedding.test.ts"];

/**
 * Files that load, kill or connect whole servers, those that work with the console in a browser, and those that need `test/oracles`: reference servers
 * of MCP, rules of the formats of files, and libraries of clouds. Also those that take seconds of processor time for the largest that is allowed.
 */
const SERVERS = [
  "spec/console/**/*.test.ts",
  "{chaos,cluster}/**/*.test.ts",
  "conformance/*{postgres,redis,bullmq,s3}*.test.ts",
  "conformance/{move-store,documents-shared-folder,tools-mcp-reference,tools-mcp-sse}.test.ts",
  "spec/mcp/calls-at-once.test.ts",
  "spec/deploy/{formats,systemd,kubernetes,proxies,proxy-of-cluster}.test.ts",
  "spec/clouds/vendor-sdks-*.test.ts",
  "spec/docs/{site,troubleshooting}.test.ts",
  "spec/telemetry/{log-line-schema,monitoring,otlp}.test.ts",
  "spec/usage/ended-work.test.ts",
  "spec/workflow-service/{large-runs,secrets-at-rest}.test.ts",
  "spec/workflow-service/definitions/long-definitions.test.ts",
  "spec/launch/{agent-service,audit,backup,doctor-deep,documents,full-disk,hosts,https,keeping,lost-stores}.test.ts",
  "spec/launch/{measurements,old-node,own-stores,proxy-processes,ready,rotation,sign-in,stop,tool-policy,usage,user-commands}.test.ts",
  "spec/launch/workflow-{commands,run-commands,schedule-commands,service}.test.ts",
  "spec/conversations-runs/{mcp-tools,mcp-writing,turn-states,turns-elsewhere}.test.ts",
];

/**
 * Files that build packages and their API reference, or run examples and the commands of pages in processes of their own: on Node.js, Deno
 * and Bun. Most of those that need tools of other folders (`.ci/tools`) are here, too, or in `SERVERS`.
 */
const PACKAGES = [
  "conformance/suites-outside.test.ts",
  "rooms/{regular-expressions,walks}.test.ts",
  "spec/release/{bills,packages}.test.ts",
  "spec/docs/{api-reference,run-pages}.test.ts",
  "spec/launch/{new-outside,runtimes}.test.ts",
  "spec/playground/{decorators,forward-stripe,nitro,outside,own-preset,run-alone,runtimes}.test.ts",
];

// What a test starts in a process of its own is compiled once, and not each time.
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "../node_modules/.cache/compiled");

/** Tests that need no disk: fsync takes most of the time of many of them. `SERVERS` test disks, too. */
const withoutDisk = { env: inMemory(), globalSetup: ["harness/memory-folder.ts"] };

const repeatedFile = process.env["PORTICO_REPEATED_TESTS"];
const isClusterRun = process.env["PORTICO_TEST_PRESET"] === "cluster";

export default defineConfig({
  root: import.meta.dirname,
  test: {
    // Most of our tests wait for processes, browsers and disks. Clusters of tests share the 100 connections that PostgreSQL allows.
    maxWorkers: isClusterRun ? 3 : availableParallelism() + 2,
    globalSetup: process.env.PORTICO_LONG ? ["chaos/whole-bound.ts"] : [],
    // What is late tells of a busy machine, not of a fault: these only end what hangs.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // CI does not stop for one race, but its last lines name the repeated tests: each of them is a defect to mend.
    retry: Number(process.env.PORTICO_TEST_RETRY ?? 0),
    reporters: ["default", ...(repeatedFile ? [repeatedTests(repeatedFile)] : [])],
    expect: { poll: { interval: 50, timeout: 30_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: "together",
          include: ["{conformance,spec,rooms}/**/*.test.ts"],
          exclude: [...ALONE, ...PACKAGES, ...SERVERS],
          // One after another in the same process, files load what they import once: nearly half of the suite's processor time.
          isolate: false,
          ...withoutDisk,
        },
      },
      { extends: true, test: { name: "alone", include: ALONE, ...withoutDisk } },
      // `npm run test:packages` and `npm run test:servers`: CI runs them after `npm test`, which is for every change.
      { extends: true, test: { name: "packages", include: PACKAGES, isolate: false, ...withoutDisk } },
      { extends: true, test: { name: "servers", include: SERVERS, isolate: false, testTimeout: 180_000, hookTimeout: 180_000 } },
      // `npm run test:deploy`: builds the container image, and runs it.
      { extends: true, test: { name: "deploy", include: ["deploy/**/*.test.ts"] } },
      // `npm run test:cluster`: every service of a file is a cluster of three members. CI runs it last.
      ...(isClusterRun
        ? [
            {
              extends: true as const,
              test: {
                name: "on-cluster",
                include: suiteFiles().onCluster,
                isolate: false,
                // Each service that a test starts is three apps.
                testTimeout: 180_000,
                hookTimeout: 180_000,
                runner: "./cluster/suites/suites-runner.ts",
                globalSetup: ["cluster/suites/suites-setup.ts"],
              },
            },
          ]
        : []),
      // `npm run try:tools` installs large programs and runs them: not for every day.
      ...(process.env.PORTICO_CODING_TOOLS
        ? [{ extends: true as const, test: { name: "coding-tools", include: ["coding-tools/**/*.test.ts"] } }]
        : []),
    ],
  },
});
