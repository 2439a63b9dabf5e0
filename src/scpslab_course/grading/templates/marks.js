const quoted = (text) => /[",;\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
document.getElementById("save").addEventListener("click", () => {
  const rows = [...document.querySelectorAll("[data-row]")].sort((one, other) => one.dataset.number - other.dataset.number);
  const lines = rows.map((row) => [...JSON.parse(row.dataset.row), ...[...row.querySelectorAll("input")].map((one) => one.value.trim())]);
  const text = [JSON.parse(document.body.querySelector("main").dataset.columns), ...lines].map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = "marks.csv";
  link.click();
});
