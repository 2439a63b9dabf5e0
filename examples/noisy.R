# Means and a figure of a run of noisy.yaml, in base R:   Rscript examples/noisy.R runs/noisy-…   (transfer.png is written here)
run <- commandArgs(trailingOnly = TRUE)[1]
cells <- read.csv(file.path(run, "results.csv"))
done <- subset(cells, status == "completed")
cat(nrow(done), "of", nrow(cells), "cells completed\n")
print(aggregate(transfer_s ~ stack + ber, data = done, FUN = function(x) c(mean = mean(x), n = length(x))))

# Both stacks met the same bit errors in the same repeat: compare them pair by pair.
pairs <- merge(subset(done, stack == "cubic"), subset(done, stack == "bbr"), by = c("ber", "repeat."), suffixes = c("_cubic", "_bbr"))
pairs$ratio <- pairs$transfer_s_cubic / pairs$transfer_s_bbr
print(aggregate(ratio ~ ber, data = pairs, FUN = mean))

png("transfer.png", width = 800, height = 600)
boxplot(transfer_s ~ stack + ber, data = done, ylab = "Transfer time (s)", xlab = "Stack and bit error rate")
invisible(dev.off())
