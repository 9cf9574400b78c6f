import { expect } from "vitest";
import { png } from "../../harness/media-samples.ts";
import type { Reader } from "./run-page.ts";

const SAID = /You said: Hello \(This is the offline demo model\.\)/;
const helper = { "agents/helper/agent.json": '{ "name": "Helper", "instructions": "Answer briefly." }' };

/** The pages whose shell blocks are run, each by its reader. */
export const readers: Readonly<Record<string, Reader>> = {
  "README.md": {
    files: { "README.md": "# A file to send" },
    prints: [
      SAID,
      SAID,
      SAID,
      /^completed$/m,
      /"fileReference":"/,
      /"secret":"whs_/,
      /"accepted":true,"agentId":"helper","event":"deploy"/,
      /"status":"started"/,
      /\{"runs":\[\{"runId":"wrun_/,
    ],
    async afterwards(service, printed) {
      const [, runId] = /"runId":"(wrun_\w+)"/.exec(printed)!;
      const greeting = "You said: Say hello to Ada (This is the offline demo model.)";
      expect(await service.until("greet", runId!, "completed")).toMatchObject({ finalOutputs: { greeting } });
    },
  },
  "docs/tutorial-first-agent.md": {
    creates: { folder: "tea-shop", program: "src/main.ts" },
    again: { '/receipt"': /"receipts":\[\{/, "schedule-messages": /Ada orders tea/ },
    prints: [
      /^http:\/\/127\.0\.0\.1:\d+\/\S+$/m,
      /\[tool_call\] \{.*"count_stock"/,
      /There are 12 packets of tea\./,
      /^completed$/m,
      /\[tool_call\] \{.*"shop\/opening-hours"/,
      /The tool answered: From nine to five\./,
      /^completed$/m,
      /"runs":\[\{/,
      /"tool_calls":\[\{.*shop\/opening-hours/,
      /"secret":"whs_/,
      /"accepted":true,"agentId":"clerk","event":"order"/,
      /"displayName":"order"/,
    ],
  },
  "docs/areas/model-proxy.md": {
    prints: [SAID, SAID, /"data":\[\{"id":"demo"/],
  },
  "docs/guides/ask-a-person.md": {
    again: { "workflow show $FIRST": /Publish this\?/ },
    prints: [
      /waiting_human/,
      /Publish this\?/,
      /To members: You said: Write a notice: The lift works again/,
      /Not published\. Nobody wants to read that\./,
    ],
  },
  "docs/guides/agents-as-models.md": {
    files: { ...helper, "portico.config.json": JSON.stringify({ agent: { asModels: { userId: "ada" } } }) },
    prints: [/"id":"helper",[^}]*"owned_by":"agents"/, SAID, SAID],
  },
  "docs/guides/your-tools.md": { prints: [SAID, SAID] },
  "docs/operations.md": { prints: [] },
  "docs/client.md": {
    files: { ...helper, "photo.png": png(4, 3), "report.pdf": "%PDF-1.7" },
    prints: [
      SAID,
      /^completed$/m,
      /^completed$/m,
      /^http:\/\/127\.0\.0\.1:\d+\/media\/\S+\.png\?expires=\d+&signature=\S+$/m,
      /^0 missing$/m,
    ],
  },
  "docs/areas/conversations-runs.md": {
    prints: [
      /^etag: "/im,
      /"agentId":"greeter".*"created":true/,
      /"removed":true/,
      /^202 \{ ok: true/m,
      / 1 You$/m,
      / 9  model\.\)$/m,
      / completed$/m,
    ],
  },
  "docs/approvals.md": {
    files: helper,
    again: {
      "npx portico approvals list\n": /DelegateToAgent: medium risk/,
      '"$AGENT/api/approvals"': /"callId":"toolu_demo/,
      "decide-approvals.ts": /boss calls DelegateToAgent with/,
    },
    prints: [
      /DelegateToAgent: medium risk/,
      /DelegateToAgent is rejected/,
      /^completed$/m,
      /"callId":"toolu_demo/,
      /"decision":"approve"/,
      /DelegateToAgent is approved/,
      /^completed$/m,
      /boss calls DelegateToAgent with/,
      /boss may use DelegateToAgent: consent_/,
      /^CONSENT ID /m,
    ],
  },
  "docs/agent-memory.md": {
    prints: [/The document is created/, /^NAME .*\nMy tea /m, /"text":"With milk, please\."/, /"created":true/],
  },
  "docs/areas/attachments-media.md": {
    files: { "report.pdf": "%PDF-1.7" },
    prints: [/"fileReference":"/],
  },
  "docs/areas/agent-webhook.md": {
    again: { "schedule-messages": /Version 1\.2 was deployed/ },
    prints: [
      /"secret":"whs_/,
      /\{"accepted":true,"agentId":"helper","event":"deploy"\}/,
      /"displayName":"deploy"/,
      /^deploy .*Version 1\.2/m,
    ],
  },
  "docs/areas/agent-webhook-senders.md": {
    files: { "agents/helper/agent.json": JSON.stringify({ name: "Helper", instructions: "Answer briefly." }) },
    prints: [
      /"success":true,"sender":"my-repository","path":"\/api\/webhook\/helper\/my-repository"/,
      /\{"accepted":true,"agentId":"helper","event":"deploy"\}/,
    ],
  },
  "docs/areas/workflow-service.md": {
    files: {
      "portico.config.json": JSON.stringify({ workflow: { bindings: [{ id: "b1", workflowId: "triage", boardId: "B" }] } }),
    },
    again: { '/runs/$RUN_ID"': /"humanGate":\{/ },
    prints: [
      /"workflows":\[\{"id":"triage"/,
      /\{"runId":"wrun_\w+","workflowId":"triage","status":"started"\}/,
      /\{"runId":"wrun_\w+","workflowId":"triage","status":"started"\}/,
      /"humanGate":\{/,
      /^\{"runs":\[\]\}$/m,
      /"accepted":true,"nodeId":"approve","decision":"approve"\}/,
      /"accepted":true\}/,
      /^event: workflow:complete$/m,
    ],
    async afterwards(_service, printed) {
      const [run, other] = [...printed.matchAll(/"runId":"(wrun_\w+)","workflowId":"triage","status":"started"/g)];
      expect(printed).toContain(
        `{"runId":"${run![1]}","workflowId":"triage","status":"completed","finalOutputs":{"severity":2}}`,
      );
      expect(printed).toContain(`{"runId":"${other![1]}","accepted":true}`);
    },
  },
};
