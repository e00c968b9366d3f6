/** Inspector in a real browser, against the example `report_service`: its tools, prompts and resources, in both eras. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { STUCK } from "../server.js";
import { startBrowser } from "./chromium.js";
import { startInspector, startReportService } from "./inspector.js";

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser?.close());

/** Keeps what the page looks like, if a directory for that is named. */
async function keep(page, name) {
  const folder = process.env.LONGHAUL_SCREENSHOTS;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), animations: "disabled" });
}

for (const era of ["modern", "legacy"]) {
  test(`prompts and resources are listed, got, read and completed, and a tool is called: ${era}`, STUCK, async (t) => {
    const service = await startReportService();
    t.after(() => service.stop());
    const inspector = await startInspector(service.url, era);
    t.after(() => inspector.stop());
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    t.after(() => page.close());
    const open = (tab) => page.getByText(tab, { exact: true }).first().click();
    // The name of an entry is followed by its description.
    const press = (name) => page.getByRole("button", { name: new RegExp(`^${name}`) }).click();
    // Inspector asks the server for completions while the user types.
    const typeTopic = async () => {
      await page.getByPlaceholder("Enter topic").pressSequentially("ott");
      await page.getByRole("option", { name: "otters" }).click();
    };

    await page.goto(inspector.url);
    // The switch is an invisible input; its drawing is the element after it. Inspector replaces the card of the server once it
    // knows that the list is read-only. A click looks for its element again if the element was replaced.
    await page.getByRole("switch", { name: /Connect or disconnect/ }).locator("xpath=following-sibling::*[1]").click();
    await open("Prompts");
    await press("Close monitoring sidebar");
    await page.getByText("Prompts (2)").waitFor();
    await press("Summarize a report");
    await typeTopic();
    await keep(page, `${era}-prompt`);
    await press("Get Prompt");
    await page.getByText("Summarize this report on otters in one sentence.").waitFor();
    await keep(page, `${era}-messages`);

    await open("Resources");
    await page.getByText("URIs (2)").waitFor();
    await page.getByText("Templates (1)").waitFor();
    await press("All reports");
    await page.getByText("report://topics/otters").waitFor();
    await keep(page, `${era}-resource`);
    await press("A report");
    await typeTopic();
    await keep(page, `${era}-completion`);
    await press("Read Resource");
    await page.getByText("Otters hold hands while they sleep.").waitFor();
    await keep(page, `${era}-template`);

    await open("Tools");
    await page.getByText("Write a report").first().waitFor();
    await keep(page, `${era}-tools`);
    await press("Write a report");
    await page.getByRole("textbox", { name: /topic/ }).fill("bees");
    await press("Execute Tool");
    await page.getByText("The report can be read at report://topics/bees").first().waitFor();
    await keep(page, `${era}-result`);
    if (era === "modern") {
      await open("Tasks");
      await page.getByText("completed").first().waitFor();
      await keep(page, `${era}-tasks`);
    }
    assert.equal(await page.getByText("Disconnected").count(), 0);
  });
}
