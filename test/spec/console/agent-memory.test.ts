import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";

describe.skipIf(findChromium() === undefined)("the memory of an agent in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      files: {
        "agents/keeper/agent.json": { name: "Keeper", memory: true },
        "agents/plain/agent.json": { name: "Plain" },
      },
    });
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const path = "/api/agents/keeper/memory";
  const write = async (name: string, text: string) => {
    const answer = await fetch(`${opened.service.url("agent")}${path}/${name}`, {
      method: "PUT",
      headers: { "x-agent-service-token": opened.token, "content-type": "application/json", "if-none-match": "*" },
      body: JSON.stringify({ text }),
    });
    expect(answer.status).toBe(200);
  };
  const row = (name: string) => {
    const { page } = opened;
    const rows = page.getByRole("table", { name: "Documents" }).getByRole("row");
    return rows.filter({ has: page.getByRole("rowheader", { name, exact: true }) });
  };

  it("is reached from the page of an agent with a memory, and says that it is empty", async () => {
    const { page } = opened;
    await opened.goTo("Agents");
    await page.getByRole("link", { name: "Keeper" }).first().click();
    await page.getByRole("link", { name: "Memory" }).click();
    await page.getByRole("heading", { level: 1, name: "Memory of Keeper" }).waitFor();
    await page.getByText("The agent remembers nothing of you").waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("shows documents, which are edited, and has no findings in any look", async () => {
    const { page } = opened;
    await write("likes", "Tea");
    await row("likes").getByRole("button", { name: "Edit" }).click();
    const text = page.getByRole("dialog").getByLabel("Text");
    expect(await text.inputValue()).toBe("Tea");
    await text.fill("Coffee");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved “likes”").waitFor();
    expect(await opened.call("GET", `${path}/likes`)).toMatchObject({ text: "Coffee", writtenBy: "user" });
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("takes a new document, and no second one of the same name", async () => {
    const { page } = opened;
    const dialog = page.getByRole("dialog");
    for (const isSecond of [false, true]) {
      await page.getByRole("button", { name: "New document" }).click();
      expect(await dialog.getByLabel("Name").inputValue()).toBe("");
      await dialog.getByLabel("Name").fill("My city ");
      await dialog.getByLabel("Text").fill(isSecond ? "Lost" : "Bern");
      await dialog.getByRole("button", { name: "Save" }).click();
      if (!isSecond) await row("My city").waitFor();
    }
    await dialog.getByRole("alert").getByText("A document of this name exists").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await opened.call("GET", `${path}/My%20city`)).toMatchObject({ text: "Bern", writtenBy: "user" });
  });

  it("keeps what another writer saved meanwhile, and says so", async () => {
    const { page } = opened;
    await row("likes").getByRole("button", { name: "Edit" }).click();
    await opened.call("DELETE", path);
    await write("likes", "Water");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Text").fill("Lost");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("alert").getByText("has changed since you opened it").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await opened.call("GET", `${path}/likes`)).toMatchObject({ text: "Water" });
  });

  it("erases one document, and all, after a confirmation", async () => {
    const { page } = opened;
    await write("other", "Sugar");
    await row("likes").getByRole("button", { name: "Erase" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Cancel" }).click();
    await row("likes").getByRole("button", { name: "Erase" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Erase" }).click();
    await row("likes").waitFor({ state: "detached" });
    await row("other").waitFor();
    await page.getByRole("button", { name: "Erase all" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Erase all" }).click();
    await page.getByText("The agent remembers nothing of you").waitFor();
    expect((await opened.call("GET", path)).documents).toEqual([]);
  });
});
