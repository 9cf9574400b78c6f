import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";
import { fromGithub, fromStripe } from "../../harness/signed-notifications.ts";

const event = { promptTemplate: "Look at {{ref}}", toolIds: [], maxTurns: 2 };

describe.skipIf(findChromium() === undefined)("senders of webhooks in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      files: {
        "agents/helper/agent.json": { name: "Helper", webhooks: { enabled: true, events: { pushed: event, paid: event } } },
      },
      context: { permissions: ["clipboard-read", "clipboard-write"] },
    });
    await opened.goTo("Webhooks");
    await opened.page.getByRole("table", { name: "Agents" }).getByRole("link", { name: "Helper", exact: true }).click();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const copied = () => opened.page.evaluate(() => navigator.clipboard.readText());
  const senders = async () => (await opened.call("GET", "/api/agents/helper/webhooks/senders")).items;
  const table = () => opened.page.getByRole("table", { name: "Senders" });
  const send = async (url: string, { headers, body }: { headers: Readonly<Record<string, string>>; body: string }) =>
    (await fetch(url, { method: "POST", headers, body })).status;
  async function takeSecret(): Promise<string> {
    const { page } = opened;
    await page.getByRole("dialog").getByRole("button", { name: "Copy secret" }).click();
    const secret = await copied();
    await page.getByRole("button", { name: "Done" }).click();
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    return secret;
  }
  async function addressOf(sender: string): Promise<string> {
    await table()
      .getByRole("button", { name: `Copy address of ${sender}` })
      .click();
    return copied();
  }

  it("a sender of GitHub gets a secret, which is shown once, and an address to copy", async () => {
    const { page } = opened;
    await page.getByRole("link", { name: "New sender" }).click();
    await page.getByLabel("Name", { exact: true }).fill("My Repository");
    await page.getByRole("alert").getByText("lowercase letters").waitFor();
    await page.getByLabel("Name", { exact: true }).fill("my-repository");
    await page.getByLabel("Name at the sender").fill("push");
    await page.getByLabel("Event of the agent").selectOption("pushed");
    await page.getByRole("listitem").filter({ hasText: "Payload URL" }).waitFor();
    await page.getByText(/\/api\/webhook\/helper\/my-repository$/).waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.getByRole("button", { name: "Create sender" }).click();
    const secret = await takeSecret();
    expect(await page.content()).not.toContain(secret);
    expect(await send(await addressOf("my-repository"), await fromGithub(secret, "push", { ref: "main" }))).toBe(200);
    expect(await send(await addressOf("my-repository"), await fromGithub("wrong", "push", { ref: "main" }))).toBe(401);
    const received = page.getByRole("table", { name: "Received events" });
    await received.getByRole("row").filter({ hasText: "from my-repository" }).getByRole("link", { name: "Run" }).waitFor();
    await received.getByText("missing or wrong signature").waitFor();
    await page.getByLabel("Received events with status").selectOption("accepted");
    await received.getByText("missing or wrong signature").waitFor({ state: "detached" });
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("a sender that makes its secret itself needs it", async () => {
    const { page } = opened;
    await page.getByRole("link", { name: "New sender" }).click();
    await page.getByLabel("Name", { exact: true }).fill("billing");
    await page.getByLabel("Kind").selectOption("Stripe");
    await page.getByLabel("Name at the sender").fill("invoice.paid");
    await page.getByLabel("Event of the agent").selectOption("paid");
    await page.getByRole("button", { name: "Create sender" }).click();
    expect(await senders()).toHaveLength(1);
    await page.getByLabel("Secret").fill("whsec_of_stripe");
    await page.getByRole("button", { name: "Another event" }).click();
    await page.getByLabel("Name at the sender").last().fill("invoice.paid");
    await page.getByRole("alert").first().getByText("occurs twice").waitFor();
    await page.getByLabel("Name at the sender").last().fill("charge.refunded");
    await page.getByLabel("Event of the agent").last().selectOption("paid");
    await page.getByRole("button", { name: "Create sender" }).click();
    const sent = fromStripe("whsec_of_stripe", { id: "evt_1", type: "charge.refunded" });
    expect(await send(await addressOf("billing"), sent)).toBe(200);
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  it("its events are changed, and its secret is replaced: the former one stays valid for a day", async () => {
    const { page } = opened;
    await table().getByRole("link", { name: "my-repository" }).click();
    await page.getByRole("button", { name: "Make a new secret" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Make a new secret" }).click();
    const secret = await takeSecret();
    await page.getByLabel("Name at the sender").fill("release.published");
    await page.getByRole("button", { name: "Save" }).click();
    await table().getByText("release.published").waitFor();
    const sent = await fromGithub(secret, "release", { action: "published" });
    expect(await send(await addressOf("my-repository"), sent)).toBe(200);
  });

  it("asks before a sender is deleted", async () => {
    const { page } = opened;
    await table().getByRole("button", { name: "Delete billing" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
    await expect.poll(senders).toHaveLength(1);
    await expect.poll(() => table().getByText("billing").count()).toBe(0);
  });

  it("says that there is no such sender at its address", async () => {
    const { page } = opened;
    await page.evaluate(() => (location.hash = "#/webhooks/helper/senders/billing"));
    await page.getByRole("alert").getByText("has no sender “billing”").waitFor();
  });
});
