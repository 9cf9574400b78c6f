/** Rules of one kind, and the tests that have to notice when one of them changes. */
export interface RuleGroup {
  readonly name: string;
  /** Sources to mutate. */
  readonly files: readonly string[];
  /** Globs of test files, from `test/`. Tests that run services in other processes see nothing of a mutation. */
  readonly tests: readonly string[];
}

/** Rules that guard access and durability: a mutation of one that no test notices is a missing test. */
export const RULES: readonly RuleGroup[] = [
  {
    name: "origins and hosts",
    files: ["core/src/http/origin-rule.ts", "core/src/http/host-rule.ts", "core/src/http/linger.ts"],
    tests: ["spec/grammar/*.test.ts", "spec/realtime/door.test.ts"],
  },
  {
    name: "identities and keys",
    files: [
      "adapters/src/identity/tokens.ts",
      "adapters/src/secrets/files.ts",
      "adapters/src/secrets/records.ts",
      "adapters/src/secrets/secret-name.ts",
      "adapters/src/sealing/aes-gcm.ts",
      "adapters/src/sealing/sealed-text.ts",
      "adapters/src/signing/hmac.ts",
    ],
    tests: ["conformance/{identity,secrets,secrets-records,sealing,signing}.test.ts"],
  },
  {
    name: "agent webhooks",
    files: [
      "plugins/src/agent-webhook/endpoint-state.ts",
      "plugins/src/agent-webhook/routes/webhook-services.ts",
      "plugins/src/agent-webhook/webhook-secrets.ts",
    ],
    tests: ["spec/agent-webhook/*.test.ts"],
  },
  {
    name: "attachments and media",
    files: [
      "plugins/src/attachments-media/guards.ts",
      "core/src/kit/pending-uploads.ts",
      "plugins/src/attachments-media/signed-links.ts",
    ],
    tests: ["spec/attachments-media/*.test.ts", "spec/conversations-runs/files.test.ts"],
  },
  {
    name: "queries accepted once",
    files: [
      "core/src/grammar/access.ts",
      "plugins/src/conversations-runs/queries/admission.ts",
      "plugins/src/conversations-runs/requests/client-requests.ts",
    ],
    tests: ["spec/conversations-runs/{conversations,guarded-routes,hard-cases,queries,realtime,restarts}.test.ts"],
  },
  {
    name: "model proxy",
    files: [
      "plugins/src/model-proxy/guards.ts",
      "plugins/src/model-proxy/header-filter.ts",
      "plugins/src/model-proxy/own-credentials.ts",
      "plugins/src/model-proxy/safe-tokens.ts",
    ],
    tests: [
      "spec/model-proxy/{authentication,guarded-routes,headers,hostile-requests,loops,order-of-checks,own-credentials,safe-tokens,upstream-errors}.test.ts",
      "spec/config/*.test.ts",
    ],
  },
  {
    name: "grants and scopes of workflows",
    files: [
      "plugins/src/workflow-service/execution-grants.ts",
      "plugins/src/workflow-service/access/grants.ts",
      "plugins/src/workflow-service/access/guards.ts",
      "plugins/src/workflow-service/access/task-scope.ts",
    ],
    tests: ["spec/workflow-service/*.test.ts"],
  },
  {
    name: "where workflows send requests",
    files: [
      "adapters/src/outbound/address-guard.ts",
      "adapters/workflow-nodes/src/http/http-client.ts",
      "adapters/workflow-nodes/src/http/read-url.ts",
    ],
    tests: ["conformance/workflow-nodes.test.ts", "spec/workflow-service/nodes/{http,public-addresses}.test.ts"],
  },
  {
    name: "files that survive a kill",
    files: ["adapters/src/blobs/files/file-draft.ts", "adapters/src/documents/unstorage/fresh-file.ts"],
    tests: ["conformance/{blobs,blobs-files,documents}.test.ts"],
  },
];
